// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves a chat's stream to people and programs: what is committed and what is being said, as one story
// of server-sent events, over HTTP.
//
// It keeps no state of its own. Package follow says what the events mean and how a client resumes; package auth says who
// may listen. A client that is too slow is cut and resumes. A relay that cannot be reached costs the preview only:
// committed messages come in any case.
//
//	GET /v1alpha1/namespaces/{namespace}/chats/{chat}/stream   text/event-stream
//
// The position is the header Last-Event-ID, or ?lastEventId=, or ?from=now for the chat's present head, or else the start
// of the chat. Refusals are JSON objects with status, reason and message. A stream begins with "retry: 1000"; a comment
// comes every 15 seconds.
package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/telemetry"
)

const (
	// keepAliveEvery is how often a comment tells client and proxies that the stream lives.
	keepAliveEvery = 15 * time.Second
	// recheckEvery is how often the right to a stream is checked while it lasts.
	recheckEvery = 5 * time.Minute
	// writeTimeout is how long a client may take to accept an event before it is cut.
	writeTimeout = 10 * time.Second
)

// Checker decides who may follow a chat: nil for yes.
type Checker interface {
	Check(ctx context.Context, token, namespace, chat string) *auth.Error
}

// Config is what a gateway is made of.
type Config struct {
	// Chats lists and watches the Chats of all namespaces.
	Chats cache.ListerWatcher
	// Pods lists and watches the generation pods of all namespaces.
	Pods cache.ListerWatcher
	// GetMessage fetches one ChatMessage.
	GetMessage GetMessage
	// Checker decides who may follow.
	Checker Checker
	// RelayPort is the port of the relays on the generation pods.
	RelayPort int
	// RelayTokenFile holds the token that proves to relays that this is the gateway. It is read for each stream.
	RelayTokenFile string
	// Log, default slog.Default.
	Log *slog.Logger
	// Metrics counts streams; nil: nobody is told.
	Metrics *telemetry.Gateway
}

// Gateway serves streams. Run must be running for it to know anything.
type Gateway struct {
	config   Config
	chats    *chats
	pods     cache.SharedIndexInformer
	messages *messages
	relays   *relays

	// Intervals, which tests shorten.
	keepAlive, recheck, writeTimeout time.Duration
}

// New makes a gateway.
func New(config Config) (*Gateway, error) {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	chats, err := newChats(config.Chats)
	if err != nil {
		return nil, err
	}
	pods, err := newPods(config.Pods)
	if err != nil {
		return nil, err
	}
	return &Gateway{
		config: config, chats: chats, pods: pods,
		messages:  newMessages(config.GetMessage),
		relays:    newRelays(pods.GetStore(), config.RelayPort, config.RelayTokenFile, config.Log),
		keepAlive: keepAliveEvery, recheck: recheckEvery, writeTimeout: writeTimeout,
	}, nil
}

// Run keeps the gateway's view of the cluster up to date until ctx is done.
func (g *Gateway) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { g.chats.informer.RunWithContext(ctx) })
	running.Go(func() { g.pods.RunWithContext(ctx) })
	running.Wait()
}

// Synced says whether the gateway has seen the whole cluster once.
func (g *Gateway) Synced() bool { return g.chats.added.HasSynced() && g.pods.HasSynced() }

// Handler serves the streams, /healthz and /readyz.
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
	mux.HandleFunc("GET /v1alpha1/namespaces/{namespace}/chats/{chat}/stream", g.stream)
	return mux
}

func (g *Gateway) stream(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("chat")
	token := bearerToken(r)
	if refusal := g.config.Checker.Check(r.Context(), token, namespace, name); refusal != nil {
		refuse(w, refusal.Status, refusal.Reason, refusal.Message)
		return
	}
	from, err := position(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	if !g.Synced() {
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the gateway is starting, try again")
		return
	}
	watcher := g.chats.watch(namespace, name)
	defer watcher.stop()
	if watcher.Latest() == nil {
		refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("there is no chat %s in namespace %s", name, namespace))
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var checking sync.WaitGroup
	defer checking.Wait()
	defer cancel(nil)
	checking.Go(func() { g.recheckAccess(ctx, cancel, token, namespace, name) })
	g.serve(ctx, w, watcher, from)
}

// serve follows the chat to the end of the stream. How it ends is the client's business: it resumes if it wants to.
func (g *Gateway) serve(ctx context.Context, w http.ResponseWriter, watcher *watcher, from follow.Position) {
	out := newEventWriter(w, g.writeTimeout)
	if err := out.begin(); err != nil {
		return
	}
	defer g.config.Metrics.StreamOpened()()
	follower := follow.Follower{
		Chats: watcher, Messages: g.messages, Parts: g.relays,
		Send: out.send, KeepAlive: out.keepAlive, KeepAliveEvery: g.keepAlive,
	}
	if err := follower.Run(ctx, from); err != nil {
		g.config.Log.DebugContext(ctx, "stream ended", "chat", watcher.key, "error", err)
	}
}

// recheckAccess ends the stream when the right to it is gone. An API server that gives no answer takes nothing away.
func (g *Gateway) recheckAccess(ctx context.Context, end context.CancelCauseFunc, token, namespace, chat string) {
	ticker := time.NewTicker(g.recheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if refusal := g.config.Checker.Check(ctx, token, namespace, chat); refusal != nil && refusal.Denied() {
				end(refusal)
				return
			}
		}
	}
}

func position(r *http.Request) (follow.Position, error) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("lastEventId")
	}
	switch from := r.URL.Query().Get("from"); {
	case id != "" || from == "":
		return follow.ParsePosition(id)
	case from == "now":
		return follow.Position{Now: true}, nil
	default:
		return follow.Position{}, fmt.Errorf("from must be now or left out, not %q", from)
	}
}

func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Refusal is the body of an answer that is no stream.
type Refusal struct {
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Refusal{Status: status, Reason: reason, Message: message}) // or the client is gone
}
