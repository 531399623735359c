// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compat serves OpenAI's Responses, Chat Completions and Models, and Anthropic's Messages and Models, over
// durable chats: a request becomes a message of an ordinary Chat, and the answer is the chat's reply.
// docs/reference/openai.md and docs/reference/anthropic.md describe them for clients.
//
// Packages completions, responses and messages translate. This package speaks HTTP, and uses the API server with the
// caller's own token. Nothing is kept between two requests.
package compat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/slowclient"
)

const (
	// maxBody is the most bytes of a request's body, with the conversation that a client resends: 16 MiB.
	maxBody = 16 << 20
	// piece is how many bytes of a body are read at a time.
	piece = 64 << 10
	// bodyTimeout bounds how long each arrivalPiece of a body may take: 52 KiB a second, as with uploads.
	bodyTimeout  = 20 * time.Second
	arrivalPiece = 1 << 20
	// setupTimeout bounds how long it takes to create what a request asks for.
	setupTimeout = 30 * time.Second
	// bodies is how many bytes of bodies are held at the same time, for 512 MiB of memory: 32 MiB, of which a caller has
	// at most half and a piece. A decoded body takes several times as much until the message is created.
	bodies       = 32 << 20
	callerBodies = bodies/2 + piece
	// answers is how many bytes of running answers are held at the same time, for 512 MiB of memory: 64 MiB. A caller has
	// at most the bytes of two of the longest.
	answers       = 64 << 20
	callerAnswers = 2 * turn.MaxAnswer
	// requests is how many requests are read at the same time, and callerRequests, how many of a caller.
	requests, callerRequests = 32, 8
	// writeTimeout is how long a client may take to accept a piece of an answer.
	writeTimeout = 10 * time.Second
)

// Follow is a chat to follow for a caller.
type Follow struct {
	// Token of the caller, and Access, the chat.
	Token  string
	Access auth.Access
	// From is the position at which it begins.
	From func(chat *v1beta1.Chat) follow.Position
	// Live is whether Send takes parts of the running attempt, too.
	Live bool
	// Send takes an event. An error ends it.
	Send func(stream.Event) error
	// Alive is called every 15 seconds. An error ends it.
	Alive func() error
}

// Options of the server. All are required.
type Options struct {
	// Client asks the API server with the token of the context: see rest.NewClient.
	Client *apiclient.Client
	// May returns why a caller may not listen to a chat; nil if it may.
	May func(ctx context.Context, token string, access auth.Access) *refusal.Error
	// Follow follows a chat until Send or Alive fail, the permission ends, or ctx is done, and returns why.
	Follow func(ctx context.Context, f Follow) error
	// Now returns the current time.
	Now func() time.Time
	// Permit authenticates the caller with a token.
	Permit func(ctx context.Context, token string) (caller string, refused *refusal.Error)
	// Refused is called with every refusal of the gateway.
	Refused func(ctx context.Context, refused *refusal.Error)
}

type server struct {
	backend *backend
	// requests are those that are being read; bodies and answers are bytes.
	requests, bodies, answers *limit.PerCaller
}

// New serves below /v1/ for service accounts, and below /namespaces/NAMESPACE/v1/.
func New(o Options) http.Handler {
	s := &server{backend: &backend{o}, requests: limit.NewPerCaller(requests, callerRequests),
		bodies: limit.NewPerCaller(bodies, callerBodies), answers: limit.NewPerCaller(answers, callerAnswers)}
	mux := http.NewServeMux()
	for _, base := range []string{"/v1", "/namespaces/{namespace}/v1"} {
		for pattern, handle := range map[string]func(*call) error{
			"GET /models":                       s.models,
			"GET /models/{model...}":            s.model,
			"POST /chat/completions":            s.create(chatCompletions),
			"POST /messages":                    s.create(anthropicMessages),
			"POST /responses":                   s.create(openaiResponses),
			"GET /responses/{response}":         s.retrieve,
			"POST /responses/{response}/cancel": s.cancel,
			"DELETE /responses/{response}":      s.remove,
		} {
			method, path, _ := strings.Cut(pattern, " ")
			mux.HandleFunc(method+" "+base+path, s.serve(handle))
		}
		mux.HandleFunc(base+"/", s.serve(func(c *call) error {
			return &wire.Error{Status: http.StatusNotFound, Type: wire.NotFound, Code: new("unknown_url"),
				Message: "there is no " + c.r.Method + " here: see docs/reference/openai.md and docs/reference/anthropic.md"}
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
	by        caller
	namespace string
	// read is whether the body was.
	read bool
	// answering is whether the answer has begun, so that an error is part of it.
	answering bool
	// waited is whether the last event about a wait was about people.
	waited bool
}

func (c *call) ctx() context.Context { return c.r.Context() }

// serve authenticates the caller, and answers errors in the form of its protocol.
func (s *server) serve(handle func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{w: w, out: slowclient.New(w, writeTimeout), r: r, control: http.NewResponseController(w)}
		w.Header().Set("Cache-Control", "no-store")
		err := s.admit(r.Context(), c)
		if err == nil {
			c.r = r.WithContext(rest.WithToken(r.Context(), c.by.token))
			err = handle(c)
		}
		if err == nil {
			return
		}
		if own, ok := errors.AsType[*refusal.Error](err); ok {
			s.backend.Refused(r.Context(), own)
		}
		if !c.answering {
			c.refuse(errorOf(r.Context(), err))
		}
	}
}

// admit authenticates the caller and finds the namespace.
func (s *server) admit(ctx context.Context, c *call) error {
	bearer := refusal.BearerToken(c.r.Header.Get("Authorization"))
	if bearer == "" {
		bearer = c.r.Header.Get("X-Api-Key") // as Anthropic's clients send it
	}
	user, refused := s.backend.Permit(ctx, bearer)
	if refused != nil {
		return refused
	}
	c.by = caller{bearer, user}
	c.namespace = cmp.Or(c.r.PathValue("namespace"), c.r.Header.Get("X-Parley-Namespace"), namespaceOf(user))
	if !turn.IsNamespace(c.namespace) {
		return &wire.Error{Status: http.StatusBadRequest, Type: wire.InvalidRequest, Code: new("namespace_missing"),
			Message: "no namespace is named: use the base URL GATEWAY/namespaces/NAMESPACE/v1, the header " +
				"X-Parley-Namespace, or the token of a service account"}
	}
	return nil
}

// namespaceOf is the namespace of a service account; empty for other users.
func namespaceOf(user string) string {
	account, _ := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, _, isAccount := strings.Cut(account, ":")
	if account == user || !isAccount {
		return ""
	}
	return namespace
}

// begin reads a request and creates what it asks for.
func (s *server) begin(c *call, read func([]byte) (*wire.Request, error)) (*wire.Request, exchange, error) {
	request := s.requests.Lease(c.by.name)
	if refused := refusal.Limited(request.Grow(1), c.by.name, "requests under way", refusal.TooManyRequests,
		time.Second); refused != nil {
		return nil, exchange{}, refused
	}
	defer request.Release()
	held := s.bodies.Lease(c.by.name)
	defer held.Release()
	body, err := c.body(held)
	if err != nil {
		return nil, exchange{}, err
	}
	r, err := read(body)
	if err != nil {
		return nil, exchange{}, err
	}
	r.Namespace = c.namespace
	if err := c.headers(r); err != nil {
		return nil, exchange{}, err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), setupTimeout)
	defer cancel()
	e, err := s.backend.begin(ctx, c.by, &r.Request)
	if err == nil {
		c.name(e)
	}
	if other, ok := errors.AsType[*turn.SettingError](err); ok {
		field := r.Fields[other.Setting]
		err = wire.Invalid(field, "%s cannot change here: %v", field, other)
	}
	return r, e, err
}

// name sets the headers that name the chat and the message.
func (c *call) name(e exchange) {
	c.w.Header().Set("X-Parley-Chat", e.chat.Name)
	c.w.Header().Set("X-Parley-Message", e.message.Name)
}

// body reads the body, each piece within its timeout, and all within the memory for bodies.
func (c *call) body(held *limit.Lease) ([]byte, error) {
	c.read = true
	arriving := slowclient.NewReader(c.r.Body, c.w, arrivalPiece, bodyTimeout)
	from := http.MaxBytesReader(c.w, io.NopCloser(arriving), maxBody)
	var body bytes.Buffer
	for {
		if refused := c.grow(held, piece); refused != nil {
			c.w.Header().Set("Connection", "close") // The rest is not read.
			return nil, refused
		}
		_, err := io.CopyN(&body, from, piece)
		if errors.Is(err, io.EOF) {
			return body.Bytes(), nil
		}
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &refusal.Error{Status: http.StatusRequestEntityTooLarge, Reason: refusal.TooLarge, Cause: large,
				Message: "the body has more than 16 MiB"}
		}
		if err != nil {
			return nil, &refusal.Error{Status: http.StatusRequestTimeout, Reason: refusal.BadRequest,
				Message: "the body, or a MiB of it, did not arrive within 20 seconds: send it faster, or send less"}
		}
	}
}

// grow takes memory for so many bytes more.
func (c *call) grow(held *limit.Lease, n int) *refusal.Error {
	return refusal.Limited(held.Grow(int64(n)), c.by.name, "bytes under way", refusal.TooManyRequests, time.Second)
}

// headers reads the headers of a request.
func (c *call) headers(r *wire.Request) error {
	h := c.r.Header
	r.Chat = cmp.Or(h.Get("X-Parley-Chat"), r.Chat, r.Metadata["chat"])
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

func (c *call) answer(e exchange) *wire.Answer {
	return &wire.Answer{Namespace: c.namespace, Chat: e.chat.Name, Message: e.message.Name,
		Model: turn.ModelOf(e.chat, e.message), Created: e.message.CreationTimestamp.Time,
		Metadata: turn.MetadataOf(e.message), Output: turn.OutputOf(e.chat, e.message),
		ToolChoice: e.message.Spec.ToolChoice}
}
