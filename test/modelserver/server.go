// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Server answers as its script says. It is an http.Handler; the zero value is of no use, take New.
type Server struct {
	program atomic.Pointer[program]
	records records
	mux     *http.ServeMux
}

// New returns a server with a script.
func New(s Script) (*Server, error) {
	server := &Server{mux: http.NewServeMux()}
	if err := server.SetScript(s); err != nil {
		return nil, err
	}
	for path, d := range map[string]dialect{
		"/v1/chat/completions": chatDialect{}, "/v1/responses": responsesDialect{}, "/v1/messages": anthropicDialect{},
	} {
		server.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { server.answer(w, r, d) })
	}
	server.serveHosts()
	server.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		e := apiError{status: http.StatusNotFound, message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"}
		_, _ = w.Write(encode(openAIErrorShape(e, "")))
	})
	server.mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	server.mux.HandleFunc("GET /_control/requests", server.getRequests)
	server.mux.HandleFunc("DELETE /_control/requests",
		func(http.ResponseWriter, *http.Request) { server.records.forget() })
	server.mux.HandleFunc("PUT /_control/script", server.putScript)
	return server, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// SetScript replaces the script, resets its counters and forgets the requests so far.
func (s *Server) SetScript(script Script) error {
	p, err := compile(script)
	if err != nil {
		return err
	}
	s.program.Store(p)
	s.records.forget()
	return nil
}

// Requests are those since the last script, oldest first.
func (s *Server) Requests() []Record { return s.records.snapshot() }

// InFlight is the number of requests that are not over.
func (s *Server) InFlight() int {
	n := 0
	for _, r := range s.Requests() {
		if r.Ended.IsZero() {
			n++
		}
	}
	return n
}

// WaitForRequests waits until n requests have come.
func (s *Server) WaitForRequests(ctx context.Context, n int) error {
	if err := s.WaitUntil(ctx, func(all []Record) bool { return len(all) >= n }); err != nil {
		return fmt.Errorf("wait for %d requests, got %d: %w", n, len(s.Requests()), err)
	}
	return nil
}

// WaitUntil waits until the condition holds for the requests; it is asked after every change of a record.
func (s *Server) WaitUntil(ctx context.Context, holds func([]Record) bool) error {
	for {
		changed := s.records.wait()
		if holds(s.Requests()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) getRequests(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(withoutKeys(s.Requests()))
}

// maxBody is more than any test sends.
const maxBody = 64 << 20

func (s *Server) putScript(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err == nil {
		var script Script
		if script, err = Parse(body); err == nil {
			err = s.SetScript(script)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// answer handles a model request of any protocol.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialect) {
	arrived := time.Now()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	// The program is taken before the request is seen: who sees it and then puts a new script does not change its answer.
	program := s.program.Load()
	record := &Record{Protocol: d.protocol(), Path: r.URL.RequestURI(), Arrived: arrived, Header: r.Header.Clone(),
		Body: asJSON(body)}
	s.records.add(record)
	x := newExchange(w, r, d, &s.records, record)
	defer x.end()
	if refused := x.check(program, body); refused != nil {
		x.fail(*refused, nil)
		return
	}
	p, err := program.choose(x.request, r.Header)
	s.records.change(func() { record.Rule, record.Conversation, record.Call = p.rule, p.facts.Conversation, p.facts.Call })
	if err != nil {
		x.fail(apiError{status: http.StatusInternalServerError, message: "the script is wrong: " + err.Error()}, nil)
		return
	}
	x.run(p)
}

// asJSON is the body as it can stand in a JSON document: one that is no JSON as a string.
func asJSON(body []byte) json.RawMessage {
	if json.Valid(body) {
		return body
	}
	return encode(string(body))
}

// check refuses what a real provider refuses: a wrong key, a request that it does not understand, an unknown model.
func (x *exchange) check(program *program, body []byte) *apiError {
	if key := program.script.RequireKey; key != "" && keyOf(x.r.Header) != key {
		refused := x.dialect.wrongKey(keyOf(x.r.Header))
		return &refused
	}
	request, refused := x.dialect.decode(body, x.r.Header)
	if refused != nil {
		return refused
	}
	if x.request = request; !request.stream {
		return refuse("The scripted model streams its replies alone: ask for a stream.")
	}
	if models := program.script.Models; len(models) > 0 && !slices.Contains(models, request.model) {
		refused := x.dialect.unknownModel(request.model)
		return &refused
	}
	return nil
}

func keyOf(h http.Header) string {
	if key, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
		return key
	}
	for _, name := range keyHeaders {
		if key := h.Get(name); key != "" {
			return key
		}
	}
	return ""
}
