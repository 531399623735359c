// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	for path, p := range map[string]wire{
		"/v1/chat/completions": chatWire{}, "/v1/responses": responsesWire{}, "/v1/messages": anthropicWire{},
	} {
		server.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { server.answer(w, r, p) })
	}
	server.mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	server.mux.HandleFunc("GET /_control/requests", server.getRequests)
	server.mux.HandleFunc("DELETE /_control/requests", func(http.ResponseWriter, *http.Request) { server.records.forget() })
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
	for {
		changed := s.records.wait()
		if len(s.Requests()) >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d requests, got %d: %w", n, len(s.Requests()), ctx.Err())
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
func (s *Server) answer(w http.ResponseWriter, r *http.Request, protocol wire) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	record := &Record{Protocol: protocol.name(), Arrived: time.Now(), Header: r.Header.Clone(), Body: body}
	s.records.add(record)
	defer func() {
		s.records.change(func() { record.Ended, record.Aborted = time.Now(), r.Context().Err() != nil })
	}()
	program := s.program.Load()
	x := &exchange{w: w, r: r, wire: protocol, records: &s.records, record: record}
	if refused := s.check(program, r, body, protocol, x); refused != nil {
		x.fail(refused)
		return
	}
	p, err := program.choose(x.request, r.Header)
	if err != nil {
		x.fail(&Fault{Kind: FaultStatus, Status: http.StatusInternalServerError, Message: err.Error()})
		return
	}
	s.records.change(func() { record.Rule, record.ScriptedDelay = p.rule, Duration(p.before) })
	x.run(p)
}

// check refuses what a real provider refuses: a wrong key, an unknown model, a request that it does not understand.
func (s *Server) check(program *program, r *http.Request, body []byte, protocol wire, x *exchange) *Fault {
	if key := program.script.RequireKey; key != "" && keyOf(r.Header) != key {
		return &Fault{Kind: FaultStatus, Status: http.StatusUnauthorized, Message: "Incorrect API key provided: " + keyOf(r.Header)}
	}
	request, err := protocol.decode(body)
	if err == nil {
		err = request.check()
	}
	if err != nil {
		return &Fault{Kind: FaultStatus, Status: http.StatusBadRequest, Message: err.Error()}
	}
	x.request = request
	if models := program.script.Models; len(models) > 0 && !contains(models, request.model) {
		return &Fault{Kind: FaultStatus, Status: http.StatusNotFound, Message: "The model `" + request.model + "` does not exist"}
	}
	return nil
}

func keyOf(h http.Header) string {
	if key, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
		return key
	}
	return h.Get("X-Api-Key")
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// check holds what every provider demands of a conversation.
func (r *request) check() error {
	if r.model == "" {
		return errors.New("you must provide a model parameter")
	}
	if r.entries == 0 {
		return errors.New("messages: at least one message is required")
	}
	open := map[string]bool{}
	for _, t := range r.turns {
		switch t.kind {
		case turnCall:
			open[t.id] = true
		case turnResult:
			if !open[t.id] {
				return fmt.Errorf("the result of tool call %q does not follow a call with that id", t.id)
			}
			delete(open, t.id)
		case turnUser, turnAssistant:
			if len(open) > 0 && (t.kind == turnUser || t.text != "") {
				return fmt.Errorf("%d tool calls were not followed by their results", len(open))
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d tool calls were not followed by their results", len(open))
	}
	return nil
}
