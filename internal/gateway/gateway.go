// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves the streams of chats to people and programs, as server-sent events over HTTP: what is
// committed and what is being said of one chat, as one story, and how the chats of a namespace stand. docs/stream.md is
// what a client has to know.
//
// It keeps no state of its own. Packages follow and chatlist say what the events mean and how a client resumes; package
// auth says who may listen, and the right is asked for again while a stream lasts. A client that is too slow is cut and
// resumes. A relay that cannot be reached costs the preview only: committed messages come in any case. What callers can
// cost is bounded by Limits.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/fanout"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/page"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/telemetry"
)

const (
	// keepAliveEvery is how often a comment tells client and proxies that the stream lives.
	keepAliveEvery = 15 * time.Second
	// writeTimeout is how long a client may take to accept an event before it is cut.
	writeTimeout = 10 * time.Second
	// warnEvery bounds how often the same trouble is logged for all streams.
	warnEvery = time.Minute
	// arrivalPatience is how long a chat that is asked for may take to arrive by the watch, which takes milliseconds
	// unless the API server is slow.
	arrivalPatience = 2 * time.Second
)

// Checker decides who may listen.
type Checker interface {
	// Check asks whether somebody who comes may.
	Check(ctx context.Context, token string, access auth.Access) (auth.Grant, *refusal.Error)
	// Recheck asks whether somebody who listens still may.
	Recheck(ctx context.Context, token string, access auth.Access) (auth.Grant, *refusal.Error)
	// Permit says who makes requests at the API server with this token, or why none is made.
	Permit(ctx context.Context, token string) (caller string, refused *refusal.Error)
}

// Config is what a gateway is made of.
type Config struct {
	// Chats lists and watches the Chats of all namespaces.
	Chats cache.ListerWatcher
	// Pods lists and watches the generation pods of all namespaces.
	Pods cache.ListerWatcher
	// Notes lists and watches the ChatMessages of all namespaces that NoteSelector selects.
	Notes cache.ListerWatcher
	// GetMessage fetches one ChatMessage as it is now; CachedMessage as the API server's cache has it, nil: never.
	GetMessage, CachedMessage GetMessage
	// Checker decides who may listen.
	Checker Checker
	// Callers asks the API server with the tokens of callers: see rest.NewClient.
	Callers *apiclient.Client
	// RelayPort is the port of the relays on the generation pods.
	RelayPort int
	// RelayToken gets the token that proves to the relay of one pod that this is the gateway.
	RelayToken tokencache.Mint
	// Limits bound what callers can cost.
	Limits Limits
	// Now returns the current time.
	Now func() time.Time
	// Log, default slog.Default.
	Log *slog.Logger
	// Metrics counts streams and refusals; nil: nobody is told.
	Metrics *telemetry.Gateway
}

// Gateway serves streams. Run must be running for it to know anything; Serve runs it.
type Gateway struct {
	config   Config
	chats    *chats
	pods     cache.SharedIndexInformer
	messages *messages
	notes    *notes
	parts    *fanout.Hub
	encoded  *follow.Encodings
	streams  *limit.PerCaller
	memory   *follow.Memory
	warned   rate.Sometimes

	// Intervals, which tests shorten.
	keepAlive, writeTimeout, readTimeout, arrival time.Duration
	lease                                         lease
}

// New makes a gateway.
func New(config Config) (*Gateway, error) {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	limits := config.Limits.orDefaults()
	chats, err := newChats(config.Chats)
	if err != nil {
		return nil, err
	}
	pods, err := newPods(config.Pods)
	if err != nil {
		return nil, err
	}
	messages := newMessages(config.GetMessage, config.CachedMessage)
	notes, err := newNotes(config.Notes, messages, chats.wake)
	if err != nil {
		return nil, err
	}
	relays := newRelays(pods.GetStore(), config.RelayPort, tokencache.New(config.RelayToken, config.Now), config.Log)
	if _, err := pods.AddEventHandler(relays.podEvents()); err != nil {
		return nil, fmt.Errorf("watching the pods: %w", err)
	}
	return &Gateway{
		config: config, chats: chats, pods: pods,
		messages:  messages,
		notes:     notes,
		parts:     fanout.New(relays, partsBytes),
		encoded:   follow.NewEncodings(),
		streams:   limit.NewPerCaller(int64(limits.Streams), int64(limits.StreamsPerCaller)),
		memory:    follow.NewMemory(limits.StreamMemory),
		warned:    rate.Sometimes{Interval: warnEvery},
		keepAlive: keepAliveEvery, writeTimeout: writeTimeout, readTimeout: readTimeout, arrival: arrivalPatience,
		lease: lease{every: recheckEvery, again: recheckAgain, patience: recheckPatience, now: config.Now},
	}, nil
}

// Run keeps the gateway's view of the cluster up to date until ctx is done.
func (g *Gateway) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { g.chats.informer.RunWithContext(ctx) })
	running.Go(func() { g.notes.informer.RunWithContext(ctx) })
	running.Go(func() { g.pods.RunWithContext(ctx) })
	running.Wait()
}

// Synced reports whether the gateway has seen the whole cluster once.
func (g *Gateway) Synced() bool {
	return g.chats.added.HasSynced() && g.notes.added.HasSynced() && g.pods.HasSynced()
}

// Handler serves the streams, what callers do with chats, the page, /healthz and /readyz. What a page of another origin
// lets a browser ask for changes nothing.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !g.Synced() {
			http.Error(w, "the chats of the cluster are not known yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	const oneChat = "/v1alpha1/namespaces/{namespace}/chats/{chat}/stream"
	mux.HandleFunc("GET "+oneChat, g.handle(g.openChat))
	mux.HandleFunc(oneChat, refusal.Only("GET, HEAD", g.refuse)) // What serves the paths beside it does not know of it.
	operations, watched := g.operations(), g.handle(g.openList)
	mux.HandleFunc("GET /v1alpha1/namespaces/{namespace}/chats", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			watched(w, r)
			return
		}
		operations.ServeHTTP(w, r)
	})
	mux.Handle("/v1alpha1/", operations)
	compatible := g.compatible()
	mux.Handle("/v1/", compatible)
	mux.Handle("/namespaces/", compatible)
	mux.Handle(page.Path, page.Handler(page.LoginToken))
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.refuse(w, r, &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden,
			Message: "a page of another origin may not ask for changes"})
	}))
	return protection.Handler(refusal.Fallback(mux, g.refuse))
}

// operations serves what is no stream.
func (g *Gateway) operations() http.Handler {
	handler, _ := rest.New(rest.Options{
		Client: g.config.Callers, Requests: g.config.Limits.Requests, Now: g.config.Now,
		Permit: func(ctx context.Context, token string) (string, *refusal.Error) {
			return g.config.Checker.Permit(ctx, token)
		},
		Refused: g.refused,
	})
	return handler
}

// feed tells a story to one client until ctx is done, the client takes no more,
// or the story is over, which is no error.
type feed struct {
	run  func(ctx context.Context, out *eventWriter) error
	stop func()
}

// opener begins a story that the caller may hear.
type opener func(r *http.Request, access auth.Access) (feed, *refusal.Error)

// handle serves a kind of stream.
func (g *Gateway) handle(open opener) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if refused := g.answer(w, r, open); refused != nil {
			g.refuse(w, r, refused)
		}
	}
}

// refuse answers with a refusal.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, refused *refusal.Error) {
	g.refused(r.Context(), refused)
	refused.Write(w)
}

// refused counts a refusal, and reports it where that helps.
func (g *Gateway) refused(ctx context.Context, refused *refusal.Error) {
	g.config.Metrics.Refused(refused.Reason)
	g.report(ctx, refused)
}

// answer serves a stream to its end, or refuses to.
func (g *Gateway) answer(w http.ResponseWriter, r *http.Request, open opener) *refusal.Error {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // Nobody reads the body.
		return badRequest("a stream is asked for without a body")
	}
	access := auth.Access{Namespace: r.PathValue("namespace"), Chat: r.PathValue("chat")}
	token := refusal.BearerToken(r.Header.Get("Authorization"))
	caller, refused := g.admit(r.Context(), token, access)
	if refused != nil {
		return refused
	}
	defer caller.lease.Release()
	story, refused := open(r, access)
	if refused != nil {
		return refused
	}
	defer story.stop()
	g.serve(w, r, story, caller)
	return nil
}

// serve tells a story to its end. What comes of that is the client's business: it resumes if it wants to.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, story feed, caller *session) {
	ctx, stop := caller.whilePermitted(r.Context())
	defer stop()
	out := newEventWriter(w, g.writeTimeout)
	defer out.Close()
	if err := out.begin(); err != nil {
		return
	}
	closed := g.config.Metrics.StreamOpened()
	err := story.run(ctx, out)
	reason := g.close(ctx, out, err)
	closed(reason)
	g.config.Log.DebugContext(ctx, "stream ended", "path", r.URL.Path, "reason", reason, "error", err)
}

// close tells the client why the gateway ends its stream, if it does, and says how the stream ended.
func (g *Gateway) close(ctx context.Context, out *eventWriter, err error) (reason string) {
	closing, ok := errors.AsType[*stream.Closing](context.Cause(ctx))
	switch {
	case ok:
		if event, err := stream.New(stream.EventClosing, "", closing); err == nil {
			_ = out.send(event) // or the client is gone
		}
		return closing.Reason
	case err == nil:
		return telemetry.StreamOver
	case errors.Is(out.Err(), os.ErrDeadlineExceeded):
		return telemetry.StreamTooSlow
	}
	return telemetry.StreamLeft
}

// report writes to the log why callers are refused though they may be right, once a minute.
func (g *Gateway) report(ctx context.Context, refused *refusal.Error) {
	if refused.Cause == nil || ctx.Err() != nil {
		return
	}
	g.warned.Do(func() {
		g.config.Log.WarnContext(ctx, "callers are refused", "reason", refused.Reason, "error", refused.Cause)
	})
}

// openChat begins the story of a chat.
func (g *Gateway) openChat(r *http.Request, access auth.Access) (feed, *refusal.Error) {
	from, err := position(r)
	if err != nil {
		return feed{}, badRequest(err.Error())
	}
	watcher := g.chats.watch(access.Namespace, access.Chat)
	// The id of an event says that there was a chat: who resumes is told that it was deleted, as who listened was.
	if !g.arrives(r.Context(), watcher) && from.Chat == "" {
		watcher.stop()
		return feed{}, &refusal.Error{Status: http.StatusNotFound, Reason: refusal.NotFound,
			Message: fmt.Sprintf("there is no chat %s in namespace %s", access.Chat, access.Namespace)}
	}
	return feed{stop: watcher.stop, run: func(ctx context.Context, out *eventWriter) error {
		follower := follow.Follower{
			Chats: watcher, Messages: g.messages, Parts: g.parts, Queue: g.messages, Notes: g.notes, Memory: g.memory,
			Encodings: g.encoded, Send: out.send, SendParts: out.sendAll, KeepAlive: out.keepAlive, KeepAliveEvery: g.keepAlive,
		}
		return follower.Run(ctx, from)
	}}, nil
}

// arrives waits a moment for a chat that the gateway does not know: whoever creates one may follow it at once, before
// the watch has told of it.
func (g *Gateway) arrives(ctx context.Context, w *watcher) bool {
	ctx, cancel := context.WithTimeout(ctx, g.arrival)
	defer cancel()
	for w.Latest() == nil {
		select {
		case <-w.Changed():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func badRequest(message string) *refusal.Error {
	return &refusal.Error{Status: http.StatusBadRequest, Reason: refusal.BadRequest, Message: message}
}

// lastEventID is the id of the last event that the client has; empty if it has none.
func lastEventID(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("lastEventId")
}

func position(r *http.Request) (follow.Position, error) {
	id, last := lastEventID(r), int64(0)
	if given := r.URL.Query().Get("last"); given != "" {
		var err error
		if last, err = strconv.ParseInt(given, 10, 64); err != nil || last <= 0 {
			return follow.Position{}, fmt.Errorf("last must be how many messages to begin with, not %.100q", given)
		}
	}
	switch from := r.URL.Query().Get("from"); {
	case from == "now" && last > 0:
		return follow.Position{}, errors.New("from=now begins with no message, and last with some: leave one of them out")
	case id != "" || from == "":
		at, err := follow.ParsePosition(id)
		at.Last = last
		return at, err
	case from == "now":
		return follow.Position{Now: true}, nil
	default:
		return follow.Position{}, fmt.Errorf("from must be now or left out, not %.100q", from)
	}
}
