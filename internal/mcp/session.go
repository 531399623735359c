// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
)

// firstStateless is the first version of the protocol that has no sessions.
const firstStateless = "2026-07-28"

// session is a connection to a server for one step of one chat. To a server that knows sessions it is one of its own.
type session struct {
	joined   *sdk.ClientSession
	endpoint *endpoint
	line     line
	end      context.CancelCauseFunc
	now      func() time.Time

	mu    sync.Mutex
	calls int
	// declined is how often the server has asked people.
	declined int
	progress map[string]func(*sdk.ProgressNotificationParams)
}

// connect opens a session while ctx lasts, and keeps it until it is closed. The error is a *failure, or that of ctx.
func (s *Servers) connect(ctx context.Context, e *endpoint, client *http.Client) (*session, error) {
	living, end := context.WithCancelCause(context.WithoutCancel(ctx))
	living, notes := httpguard.WithNotes(living, s.options.Now)
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	opened := &session{endpoint: e, end: end, now: s.options.Now,
		progress: map[string]func(*sdk.ProgressNotificationParams){}}
	carrier, l, failed := lineTo(ctx, living, e, client)
	if failed != nil {
		end(nil)
		return nil, s.told(ctx, e, failed, failed)
	}
	opened.line = l
	joined, err := opened.client().Connect(living, carrier, nil)
	if err != nil {
		if cause := context.Cause(living); cause != nil {
			err = cause
		}
		failed := l.failure(ctx, err, notes, e.secrets)
		end(nil)
		return nil, s.told(ctx, e, failed, err)
	}
	opened.joined = joined
	return opened, nil
}

// line carries what a session says: to a url, or to a command.
type line interface {
	// failure is why something that was asked over it failed with err.
	failure(ctx context.Context, err error, notes *httpguard.Notes, secrets scrubber) *failure
}

// lineTo is the line to the server, which ends when living does.
func lineTo(ctx, living context.Context, e *endpoint, client *http.Client) (sdk.Transport, line, *failure) {
	if e.agent != nil {
		carrier, l, failed := begin(ctx, living, e)
		return exact{carrier, func(string) {}}, l, failed
	}
	caller, w := newWire(client, e.url, e.headers)
	return exact{transportOf(e, caller), w.agree}, w, nil
}

// told logs a failure, unless it is only that nobody waits any more.
func (s *Servers) told(ctx context.Context, e *endpoint, f *failure, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Canceled
	}
	s.options.Log.DebugContext(ctx, "an MCP server cannot be used", "server", e.server.Name, "host", e.host(),
		"reason", f.reason, "error", clip.Bytes(e.secrets.scrub(err.Error()), maxLogged))
	return f
}

// maxLogged is how many bytes of an error are logged: 1 KiB.
const maxLogged = 1 << 10

// client is a client that offers servers neither roots nor a model. It has people ask, who take their time: only a
// server that knows no sessions can wait for them, others are told that they decline.
func (s *session) client() *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "parley", Version: v1alpha1.GroupVersion.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
		}},
		ElicitationHandler:          s.decline,
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: s.progressed,
	})
}

func transportOf(e *endpoint, client *http.Client) sdk.Transport {
	if e.server.Transport == v1alpha1.MCPSSE {
		return &sdk.SSEClientTransport{Endpoint: e.url.String(), HTTPClient: client, MaxEventSize: int(limits.Event)}
	}
	return &sdk.StreamableClientTransport{Endpoint: e.url.String(), HTTPClient: client, MaxEventSize: int(limits.Event),
		MaxRetries: -1, DisableStandaloneSSE: true}
}

// decline answers a server that asks people while its session is open, which cannot last until they answer.
func (s *session) decline(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declined++
	return &sdk.ElicitResult{Action: "decline"}, nil
}

// asking starts to listen for whether the server asks people while a call runs. refused is a note for its result;
// empty if it has not asked.
func (s *session) asking() (refused func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.declined
	return func() string { return s.refused(before) }
}

func (s *session) refused(before int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.declined == before {
		return ""
	}
	return "\n[The server asked people for input while the call ran. That was declined: a server has to speak version " +
		firstStateless + " of the protocol to wait for their answer.]"
}

// expectProgress returns a token for a call of whose progress the function is told, until stop returns. It must not
// wait.
func (s *session) expectProgress(tell func(*sdk.ProgressNotificationParams)) (token string, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	token = fmt.Sprintf("call-%d", s.calls)
	s.progress[token] = tell
	return token, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, token)
	}
}

func (s *session) progressed(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, ok := r.Params.ProgressToken.(string)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if tell := s.progress[token]; tell != nil {
		tell(r.Params)
	}
}

// stateless reports whether the server knows no sessions.
func (s *session) stateless() bool {
	return s.joined.InitializeResult().ProtocolVersion >= firstStateless
}

// close ends the session, without waiting for a server that does not answer.
func (s *session) close() {
	go func() {
		_ = s.joined.Close() // What it answers changes nothing.
		s.end(nil)
	}()
}
