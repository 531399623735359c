// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
)

const (
	// firstStateless is the first version of the protocol that has no sessions.
	firstStateless = "2026-07-28"
	// maxLogged is how many bytes of an error are logged.
	maxLogged = 1 << 10
	// maxResumed is how often in a row a stream of a server is continued without an event: servers with sessions may close
	// a stream and let the client come back for the rest.
	maxResumed = 3
	// endPatience is how long a server may take to end a session.
	endPatience = 5 * time.Second
)

// session is a connection to a server for one step of one chat. A server with sessions has one for it.
type session struct {
	joined   *sdk.ClientSession
	endpoint *endpoint
	line     line
	end      context.CancelCauseFunc
	now      func() time.Time
	// declined counts the requests of the server for input of people.
	declined atomic.Int32

	mu       sync.Mutex
	calls    int
	progress map[string]func(*sdk.ProgressNotificationParams)
}

// line is the connection of a session: a wire, or a command.
type line interface {
	// failure explains why a request failed with err.
	failure(ctx context.Context, err error, notes *httpguard.Notes, secrets scrubber) *failure
}

// connect opens a session, which may take as long as ctx. The session lasts until it is closed. The error is a
// *failure, or that of ctx.
func (s *Servers) connect(ctx context.Context, e *endpoint, client *http.Client) (*session, error) {
	living, end := context.WithCancelCause(context.WithoutCancel(ctx))
	living, notes := httpguard.WithNotes(living, s.options.Now)
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	opened := &session{endpoint: e, end: end, now: s.options.Now,
		progress: map[string]func(*sdk.ProgressNotificationParams){}}
	transport, l, failed := newLine(ctx, living, e, client)
	if failed != nil {
		end(nil)
		return nil, s.logFailure(ctx, e, failed, failed)
	}
	opened.line = l
	joined, err := opened.client().Connect(living, transport, nil)
	if err != nil {
		if cause := context.Cause(living); cause != nil {
			err = cause
		}
		failed := l.failure(ctx, err, notes, e.secrets)
		end(nil)
		return nil, s.logFailure(ctx, e, failed, err)
	}
	opened.joined = joined
	return opened, nil
}

// newLine opens the line to the server, which ends when living does.
func newLine(ctx, living context.Context, e *endpoint, client *http.Client) (sdk.Transport, line, *failure) {
	if e.agent != nil {
		transport, l, failed := startCommand(ctx, living, e)
		return exact{transport, func(string) {}}, l, failed
	}
	client, w := newWire(living, client, e.url, e.headers)
	if e.server.Transport == v1beta1.MCPSSE {
		sse := &sdk.SSEClientTransport{Endpoint: e.url.String(), HTTPClient: client, MaxEventSize: int(limits.Event)}
		return exact{sse, w.setVersion}, w, nil
	}
	w.streamable = true
	// The client limits events: beyond a limit of its own, the library ends the session.
	return exact{&sdk.StreamableClientTransport{Endpoint: e.url.String(), HTTPClient: client,
		MaxEventSize: -1, MaxRetries: maxResumed, DisableStandaloneSSE: true}, w.setVersion}, w, nil
}

// logFailure logs a failure and returns it, unless ctx was canceled.
func (s *Servers) logFailure(ctx context.Context, e *endpoint, f *failure, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Canceled
	}
	s.options.Log.DebugContext(ctx, "an MCP server cannot be used", "server", e.server.Name, "host", e.host(),
		"reason", f.reason, "error", clip.Bytes(e.secrets.scrub(err.Error()), maxLogged))
	return f
}

// client is a client that offers servers neither roots nor a model. Only a server without sessions can wait for the
// answers of people. Requests of others for input are declined.
func (s *session) client() *sdk.Client {
	client := sdk.NewClient(&sdk.Implementation{Name: "parley", Version: v1beta1.GroupVersion.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
		}},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: s.handleProgress,
	})
	client.AddSendingMiddleware(contain)
	client.AddReceivingMiddleware(contain, s.decline)
	return client
}

// contain makes an error of a panic: what a server sends must not end the process, in whose goroutines the protocol's
// library reads it.
func contain(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				result, err = nil, fmt.Errorf("the message of the server cannot be handled: %v", p)
			}
		}()
		return next(ctx, method, request)
	}
}

// decline answers requests for input of people.
func (s *session) decline(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		switch method {
		case "elicitation/create":
			s.declined.Add(1)
			return &sdk.ElicitResult{Action: "decline"}, nil
		case "notifications/elicitation/complete":
			return nil, nil //nolint:nilnil // A notification has no result.
		}
		return next(ctx, method, request)
	}
}

// onProgress returns a token for a call whose progress handle receives, until stop returns. handle must not block.
func (s *session) onProgress(handle func(*sdk.ProgressNotificationParams)) (token string, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	token = fmt.Sprintf("call-%d", s.calls)
	s.progress[token] = handle
	return token, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, token)
	}
}

func (s *session) handleProgress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	if handle := s.progress[token]; handle != nil {
		handle(r.Params)
	}
}

// isStateless reports whether the server has no sessions.
func (s *session) isStateless() bool {
	return s.joined.InitializeResult().ProtocolVersion >= firstStateless
}

// close ends the session. It does not wait for the server, which has a moment to end its own.
func (s *session) close() {
	go func() {
		defer time.AfterFunc(endPatience, func() { s.end(nil) }).Stop()
		_ = s.joined.Close() // Its error changes nothing.
		s.end(nil)
	}()
}
