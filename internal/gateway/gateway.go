// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves people and programs over HTTP: streams of chats as server-sent events, the operations of
// package rest, the protocols of package compat, and the page. docs/reference/stream.md describes the streams.
//
// It keeps no state of its own. Packages follow and chatlist make the events and resume streams. Package auth
// authorizes listeners, and the permission is checked again while a stream lasts. A slow client is disconnected and
// resumes. A relay that cannot be reached costs only the preview. Limits bound what callers can cost.
package gateway

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/compat"
	"parley.dev/parley/internal/gateway/fanout"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/page"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/gateway/signin"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/workspace/client"
)

const (
	// keepAliveEvery is how often a comment shows client and proxies that the stream is alive.
	keepAliveEvery = 15 * time.Second
	// writeTimeout is how long a client may take to accept an event.
	writeTimeout = 10 * time.Second
	// warnEvery is how often the same problem is logged for all streams.
	warnEvery = time.Minute
	// arrivalPatience is how long the watch may take to report a new chat. That takes milliseconds, unless the API server
	// is slow.
	arrivalPatience = 2 * time.Second
	// partsBytes is the memory for live parts, in addition to 16 KiB of each episode.
	partsBytes = 32 << 20
)

// Defaults of Limits, for 512 MiB of memory: a stream costs some 80 KiB without messages.
const (
	DefaultStreams                = 1024
	DefaultStreamsPerCaller       = 128
	DefaultStreamMemory     int64 = 128 << 20
)

// Limits bound what callers can cost. A limit of 0 is its default.
type Limits struct {
	// Streams is how many streams are open at the same time. Default DefaultStreams.
	Streams int
	// StreamsPerCaller is how many of them one caller has. Default DefaultStreamsPerCaller.
	StreamsPerCaller int
	// StreamMemory is how many bytes of messages all streams hold, in addition to the 64 MiB of the newest ones that they
	// share. Default DefaultStreamMemory.
	StreamMemory int64
	// Requests is how many operations run at the same time. Default rest.DefaultRequests.
	Requests int
}

// Checker authenticates and authorizes callers: see auth.Checker.
type Checker interface {
	Check(ctx context.Context, token string, access auth.Access) (auth.Grant, *refusal.Error)
	Recheck(ctx context.Context, token string, access auth.Access) (auth.Grant, *refusal.Error)
	Permit(ctx context.Context, token string) (caller string, refused *refusal.Error)
}

// Config is the configuration of a gateway.
type Config struct {
	// Namespaces that the gateway works for; none: all.
	Namespaces []string
	// Sources are what it caches.
	Sources Sources
	// GetMessage fetches the current ChatMessage; CachedMessage that of the API server's cache, nil: never.
	GetMessage, CachedMessage GetMessage
	// Checker authenticates and authorizes callers.
	Checker Checker
	// Callers asks the API server with the tokens of callers: see rest.NewClient.
	Callers *apiclient.Client
	// SignIn signs people in to the page; nil: they paste tokens.
	SignIn *signin.SignIn
	// Archive has the chats that were archived before their deletion; nil: there is none.
	Archive *archive.Store
	// Quotas lists the ChatQuotas of a namespace, and FileLimit is how many bytes the files of a namespace may have where
	// none sets it.
	Quotas    func(ctx context.Context, namespace string) ([]v1beta1.ChatQuota, error)
	FileLimit int64
	// RelayPort is the port of the relays on the generation pods, and AgentPort that of agents in workspaces; default:
	// protocol.Port.
	RelayPort, AgentPort int
	// PodToken gets the token with which the gateway authenticates to the relay, or the agent, of one pod.
	PodToken tokencache.Mint
	// GetPod gets the pod of a workspace.
	GetPod func(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Limits bound what callers can cost.
	Limits Limits
	// Now returns the current time.
	Now func() time.Time
	// Log, default slog.Default.
	Log *slog.Logger
	// Metrics counts streams and refusals; nil: they are not counted.
	Metrics *telemetry.Gateway
}

// Gateway serves streams, from caches that Run fills. Serve runs it.
type Gateway struct {
	config   Config
	chats    *chats
	pods     *informer[*corev1.Pod]
	messages *messages
	notes    *notes
	agents   *agents
	parts    *fanout.Hub
	encoded  *follow.Encodings
	streams  *limit.PerCaller
	memory   *follow.Memory
	warned   rate.Sometimes

	// stopping is whether the gateway is told to stop.
	stopping atomic.Bool

	// Intervals, which tests shorten.
	keepAlive, writeTimeout, readTimeout, arrival, lameDuck time.Duration
	lease                                                   lease
}

// New makes a gateway.
func New(config Config) (*Gateway, error) {
	config.Log = cmp.Or(config.Log, slog.Default())
	limits := config.Limits
	chats, err := newChats(config.Sources.chats, config.Namespaces)
	if err != nil {
		return nil, err
	}
	messages := newMessages(config.GetMessage, config.CachedMessage)
	notes, err := newNotes(config.Sources.notes, config.Namespaces, messages, chats.listeners.notify)
	if err != nil {
		return nil, err
	}
	tokens := tokencache.New(config.PodToken, config.Now)
	relays := newRelays(config.RelayPort, tokens, config.Log, config.Metrics.RelayFailed)
	pods, err := newInformer(config.Sources.pods, config.Namespaces, &corev1.Pod{}, nil, addressOnly, relays.podChanged)
	if err != nil {
		return nil, err
	}
	relays.pod = pods.get
	return &Gateway{
		config: config, chats: chats, pods: pods, messages: messages, notes: notes,
		agents:  &agents{config.GetPod, tokens, client.NewTransport(), config.AgentPort},
		parts:   fanout.New(relays, partsBytes),
		encoded: follow.NewEncodings(),
		streams: limit.NewPerCaller(int64(cmp.Or(max(0, limits.Streams), DefaultStreams)),
			int64(cmp.Or(max(0, limits.StreamsPerCaller), DefaultStreamsPerCaller))),
		memory:    follow.NewMemory(cmp.Or(max(0, limits.StreamMemory), DefaultStreamMemory)),
		warned:    rate.Sometimes{Interval: warnEvery},
		keepAlive: keepAliveEvery, writeTimeout: writeTimeout, readTimeout: readTimeout, arrival: arrivalPatience,
		lameDuck: lameDuck,
		lease:    lease{every: recheckEvery, again: recheckAgain, patience: recheckPatience, now: config.Now},
	}, nil
}

// Run fills the gateway's caches until ctx is done.
func (g *Gateway) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){g.chats.run, g.notes.run, g.pods.run} {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
}

// Synced reports whether the caches were filled once; with a list of namespaces, those of one at least.
func (g *Gateway) Synced() bool { return g.syncedIn("") }

func (g *Gateway) syncedIn(namespace string) bool {
	return g.chats.hasSynced(namespace) && g.notes.hasSynced(namespace) && g.pods.hasSynced(namespace)
}

// refusesNamespace is the refusal of a request in a namespace that the gateway does not work for; nil for others.
func (g *Gateway) refusesNamespace(namespace string) *refusal.Error {
	if served := g.config.Namespaces; len(served) == 0 || slices.Contains(served, namespace) {
		return nil
	}
	return &refusal.Error{Status: http.StatusNotFound, Reason: refusal.NotFound,
		Message: fmt.Sprintf("this gateway does not serve namespace %s: its administrator can add it to --namespaces",
			namespace)}
}

// Handler serves the streams, operations, protocols, the page, /healthz and /readyz. Browsers may not make changes for
// pages of other origins.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case g.stopping.Load():
			http.Error(w, "the gateway is shutting down", http.StatusServiceUnavailable)
		case !g.Synced():
			http.Error(w, "the chats of the cluster are not known yet", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ok")
		}
	})
	const oneChat = "/v1beta1/namespaces/{namespace}/chats/{chat}/stream"
	mux.HandleFunc("GET "+oneChat, g.handle(g.openChat))
	mux.HandleFunc(oneChat, refusal.Only("GET, HEAD", g.refuse)) // The operations do not know this path.
	operations, _ := rest.New(rest.Options{Client: g.config.Callers, Requests: g.config.Limits.Requests,
		Now: g.config.Now, Permit: g.config.Checker.Permit, Refused: g.refused, Archive: g.config.Archive,
		Namespaces: g.config.Namespaces, Log: g.config.Log, Agent: g.agents.of,
		Files: rest.Files{Reader: g.fileReader, UID: g.uid, Quotas: g.config.Quotas, Limit: g.config.FileLimit}})
	list := g.handle(g.openList)
	mux.HandleFunc("GET /v1beta1/namespaces/{namespace}/chats", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			list(w, r)
			return
		}
		operations.ServeHTTP(w, r)
	})
	mux.Handle("/v1beta1/", operations)
	protocols := compat.New(compat.Options{Client: g.config.Callers, May: g.may, Follow: g.follow, Now: g.config.Now,
		Permit: g.config.Checker.Permit, Refused: g.refused})
	mux.Handle("/v1/", protocols)
	mux.Handle("/namespaces/", protocols)
	mux.Handle(page.Path, page.Handler(g.config.SignIn.Login()))
	g.config.SignIn.Register(mux, g.refused)
	mux.Handle("GET /{$}", http.RedirectHandler(page.Path, http.StatusFound))
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.refuse(w, r, &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden,
			Message: "a page of another origin may not ask for changes"})
	}))
	return protection.Handler(g.config.SignIn.Handler(refusal.Fallback(mux, g.refuse), g.refuse))
}

// fileReader authenticates a caller who may read the files of a namespace.
func (g *Gateway) fileReader(ctx context.Context, token, namespace string) (string, *refusal.Error) {
	grant, refused := g.config.Checker.Check(ctx, token, auth.Access{Namespace: namespace, Files: true})
	return grant.User, refused
}

// uid is that of a chat; empty if there is no such chat.
func (g *Gateway) uid(ctx context.Context, namespace, chat string) string {
	watcher := g.chats.watch(namespace, chat)
	defer watcher.stop()
	if found := g.await(ctx, watcher); found != nil {
		return string(found.UID)
	}
	return ""
}

// refuse answers with a refusal.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, refused *refusal.Error) {
	g.refused(r.Context(), refused)
	refused.Write(w)
}

// refused counts a refusal. A refusal that is not the caller's fault is logged, once a minute.
func (g *Gateway) refused(ctx context.Context, refused *refusal.Error) {
	g.config.Metrics.Refused(refused.Reason)
	if refused.Cause == nil || ctx.Err() != nil {
		return
	}
	g.warned.Do(func() {
		g.config.Log.WarnContext(ctx, "callers are refused", "reason", refused.Reason, "error", refused.Cause)
	})
}
