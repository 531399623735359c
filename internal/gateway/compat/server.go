// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compat serves OpenAI's Responses, Chat Completions and Models, and Anthropic's Messages and Models, over
// durable chats: a request becomes a message of an ordinary Chat, and the answer is what the chat says to it.
// docs/openai.md and docs/anthropic.md are what a client has to know.
//
// Packages completions, responses and messages translate, package conduct does what they ask for with the caller's own
// token, and this package speaks HTTP. Nothing is kept between two requests.
package compat

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/conduct"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/slowclient"
)

const (
	// maxBody is the most bytes of a request's body, of which the conversation that a client resends is a part: 16 MiB.
	maxBody = 16 << 20
	// bodyTimeout bounds how long a body takes to come.
	bodyTimeout = 20 * time.Second
	// setupTimeout bounds how long it takes to create what a request asks for.
	setupTimeout = 30 * time.Second
	// bodies is how many bytes of bodies are held at the same time, for 512 MiB of memory: 32 MiB, of which a caller has
	// at most half and a piece. What is read takes some times as much until the message is created.
	bodies       = 32 << 20
	callerBodies = bodies/2 + piece
	// answers is how many bytes of answers are held at the same time until they are told, for 512 MiB of memory: 64 MiB. A
	// caller has at most the bytes of two of the longest.
	answers       = 64 << 20
	callerAnswers = 2 * turn.MaxAnswer
	// requests is how many requests are read at the same time, and callerRequests, how many of a caller.
	requests, callerRequests = 32, 8
	// writeTimeout is how long a client may take to accept a piece of an answer.
	writeTimeout = 10 * time.Second
)

// Options of the server. All are required.
type Options struct {
	// Conductor does what requests ask for.
	Conductor *conduct.Conductor
	// Permit says who makes requests with a token, or why none is made.
	Permit func(ctx context.Context, token string) (caller string, refused *refusal.Error)
	// Refused is told of every refusal of the gateway's own.
	Refused func(ctx context.Context, refused *refusal.Error)
}

type server struct {
	options Options
	// requests are those that are being read; bodies and answers are their bytes, and those of answers.
	requests, bodies, answers *limit.PerCaller
}

// New serves below /v1/ for service accounts, and below /namespaces/NAMESPACE/v1/.
func New(o Options) http.Handler {
	s := &server{options: o, requests: limit.NewPerCaller(requests, callerRequests),
		bodies: limit.NewPerCaller(bodies, callerBodies), answers: limit.NewPerCaller(answers, callerAnswers)}
	mux := http.NewServeMux()
	for _, base := range []string{"/v1", "/namespaces/{namespace}/v1"} {
		for pattern, handle := range map[string]func(*call) error{
			"GET /models":                       s.models,
			"GET /models/{model...}":            s.model,
			"POST /chat/completions":            s.complete,
			"POST /messages":                    s.message,
			"POST /responses":                   s.respond,
			"GET /responses/{response}":         s.retrieve,
			"POST /responses/{response}/cancel": s.cancel,
			"DELETE /responses/{response}":      s.remove,
		} {
			method, path, _ := strings.Cut(pattern, " ")
			mux.HandleFunc(method+" "+base+path, s.serve(handle))
		}
		mux.HandleFunc(base+"/", s.serve(func(c *call) error {
			return &wire.Error{Status: http.StatusNotFound, Type: wire.NotFound, Code: new("unknown_url"),
				Message: "there is no " + c.r.Method + " here: docs/openai.md and docs/anthropic.md list what there is"}
		}))
	}
	return refusal.Fallback(mux, func(w http.ResponseWriter, r *http.Request, no *refusal.Error) {
		o.Refused(r.Context(), no)
		no.Write(w)
	})
}

// call is one request.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	control   *http.ResponseController
	out       *slowclient.Writer
	by        conduct.Caller
	namespace string
	// read is whether the body was.
	read bool
	// answering is whether the answer has begun, so that an error is told within it.
	answering bool
	// waited is whether the client was told last that people keep it waiting.
	waited bool
}

func (c *call) ctx() context.Context { return c.r.Context() }

// serve lets a caller with a token in, and tells errors in the form that the client reads.
func (s *server) serve(handle func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{w: w, out: slowclient.New(w, writeTimeout), r: r, control: http.NewResponseController(w)}
		w.Header().Set("Cache-Control", "no-store")
		err := s.admit(r.Context(), c)
		if err == nil {
			c.r = r.WithContext(rest.WithToken(r.Context(), c.by.Token))
			err = handle(c)
		}
		if err == nil {
			return
		}
		if own, ok := errors.AsType[*refusal.Error](err); ok {
			s.options.Refused(r.Context(), own)
		}
		if !c.answering {
			c.refuse(errorOf(r.Context(), err))
		}
	}
}

// admit finds out who asks, and of which namespace.
func (s *server) admit(ctx context.Context, c *call) error {
	bearer := refusal.BearerToken(c.r.Header.Get("Authorization"))
	if bearer == "" {
		bearer = c.r.Header.Get("X-Api-Key") // as Anthropic's clients show it
	}
	user, refused := s.options.Permit(ctx, bearer)
	if refused != nil {
		return refused
	}
	c.by = conduct.Caller{Token: bearer, Name: user}
	c.namespace = c.r.PathValue("namespace")
	if c.namespace == "" {
		c.namespace = c.r.Header.Get("X-Parley-Namespace")
	}
	if c.namespace == "" {
		c.namespace = namespaceOf(user)
	}
	if !turn.IsNamespace(c.namespace) {
		return &wire.Error{Status: http.StatusBadRequest, Type: wire.InvalidRequest, Code: new("namespace_missing"),
			Message: "no namespace is named: use the base URL GATEWAY/namespaces/NAMESPACE/v1, the header " +
				"X-Parley-Namespace, or the token of a service account"}
	}
	return nil
}

// namespaceOf is the namespace of a service account; empty for anybody else.
func namespaceOf(user string) string {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, _, named := strings.Cut(account, ":")
	if !ok || !named {
		return ""
	}
	return namespace
}

// begin reads a request and creates what it asks for.
func (s *server) begin(c *call, read func([]byte) (*wire.Request, error)) (*wire.Request, conduct.Begun, error) {
	request := s.requests.Lease(c.by.Name)
	if refused := refusal.Limited(request.Grow(1), c.by.Name, "requests under way", refusal.TooManyRequests,
		time.Second); refused != nil {
		return nil, conduct.Begun{}, refused
	}
	defer request.Release()
	held := s.bodies.Lease(c.by.Name)
	defer held.Release()
	body, err := c.body(held)
	if err != nil {
		return nil, conduct.Begun{}, err
	}
	r, err := read(body)
	if err != nil {
		return nil, conduct.Begun{}, err
	}
	r.Namespace = c.namespace
	if err := c.headers(r); err != nil {
		return nil, conduct.Begun{}, err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), setupTimeout)
	defer cancel()
	begun, err := s.options.Conductor.Begin(ctx, c.by, &r.Request)
	if err == nil {
		c.w.Header().Set("X-Parley-Chat", begun.Chat.Name)
		c.w.Header().Set("X-Parley-Message", begun.Message.Name)
	}
	if other, ok := errors.AsType[*turn.SettingError](err); ok {
		field := r.Fields[other.Setting]
		err = wire.Invalid(field, "%s cannot change here: %v", field, other)
	}
	return r, begun, err
}

// grow takes so many bytes more for what a call holds.
func (c *call) grow(held *limit.Lease, n int) *refusal.Error {
	return refusal.Limited(held.Grow(int64(n)), c.by.Name, "bytes under way", refusal.TooManyRequests, time.Second)
}

// headers reads what a request says of itself in headers.
func (c *call) headers(r *wire.Request) error {
	h := c.r.Header
	if name := h.Get("X-Parley-Chat"); name != "" {
		r.Chat = name
	} else if name := r.Metadata["chat"]; name != "" && r.Chat == "" {
		r.Chat = name
	}
	if r.Chat != "" && !turn.IsChatName(r.Chat) {
		return wire.Invalid("X-Parley-Chat", "X-Parley-Chat is not the name of a chat: lower-case letters, digits, - and .")
	}
	const longest = 256
	r.Key, r.Thread = h.Get("Idempotency-Key"), h.Get("Thread-Id")
	if len(r.Key) > longest || len(r.Thread) > longest {
		return wire.Invalid("Idempotency-Key", "Idempotency-Key and Thread-Id have at most 256 characters")
	}
	count := h.Get("X-Stainless-Retry-Count")
	r.Retried = count != "" && count != "0"
	return nil
}

func (c *call) answer(begun conduct.Begun) *wire.Answer {
	return &wire.Answer{Namespace: c.namespace, Chat: begun.Chat.Name, Message: begun.Message.Name,
		Model: turn.ModelOf(begun.Chat, begun.Message), Created: begun.Message.CreationTimestamp.Time,
		Metadata: turn.MetadataOf(begun.Message), Output: turn.OutputOf(begun.Chat, begun.Message),
		ToolChoice: begun.Message.Spec.ToolChoice}
}
