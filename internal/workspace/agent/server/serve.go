// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// bodyTimeout bounds how long the body of a request takes, and contentTimeout that of a file.
	bodyTimeout, contentTimeout = 30 * time.Second, 2 * time.Minute
	// restTimeout bounds how long the rest of a body takes that nobody reads.
	restTimeout = 5 * time.Second

	filesPath     = "/v1/files/"
	processesPath = "/v1/processes/"
	sessionsPath  = "/v1/sessions/"
	bindingPath   = "/v1/binding"
	healthPath    = "/v1/health"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.recoverPanic(w, r)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == healthPath {
		_, _ = io.WriteString(w, "ok\n")
		return
	}
	limiter, full := s.limiterOf(r)
	if !limiter.TryAcquire(1) {
		s.turnAway(w, r, full)
		return
	}
	defer limiter.Release(1)
	if err := s.admit(r); err != nil {
		s.turnAway(w, r, err)
		return
	}
	s.route(w, r)
}

// limiterOf is the limiter of a request, and the refusal if its limit is reached.
func (s *Server) limiterOf(r *http.Request) (limit.Limiter, error) {
	full := refuse(protocol.Unavailable, "The workspace has as many requests as it takes. Try again.")
	switch {
	case strings.HasPrefix(r.URL.Path, sessionsPath):
		return s.sessions, refuse(protocol.TooMany, "%d programs of MCP servers run in the workspace, which is the limit.",
			s.sessions.Size)
	case strings.HasPrefix(r.URL.Path, processesPath) && r.URL.Query().Has("wait"):
		return s.waiting, full
	}
	return s.atWork, full
}

// turnAway refuses a request whose body may not have been read.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if r.Body != http.NoBody {
		w.Header().Set("Connection", "close")
		_ = timed(w, restTimeout) // The connection is closed in any case.
	}
	s.refuseRequest(w, r, err)
}

// admit reports why a request is refused before anybody looks at what it asks for.
func (s *Server) admit(r *http.Request) error {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return fmt.Errorf("%w: there is no bearer token", satoken.ErrUnauthenticated)
	}
	if err := s.options.Authorizer.Authorize(r.Context(), token); err != nil {
		return err
	}
	if r.URL.Path == bindingPath {
		return nil
	}
	return s.binding.check(r.Header.Get(protocol.HeaderChat))
}

// route finds who answers. The paths of files are as they are; ServeMux would send a client elsewhere that asks for
// "a//b".
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if err := timed(w, bodyTimeout); err != nil {
		s.turnAway(w, r, err)
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, filesPath); ok {
		s.handle(func(w http.ResponseWriter, r *http.Request) error { return s.file(w, r, name) })(w, r)
		return
	}
	if path.Clean(r.URL.Path) != r.URL.Path {
		s.turnAway(w, r, noSuchRequest(r))
		return
	}
	s.routes.ServeHTTP(w, r)
}

func (s *Server) handlers() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range map[string]func(http.ResponseWriter, *http.Request) error{
		"PUT " + bindingPath:             decoded(s.bind),
		"GET /v1/info":                   s.info,
		"PUT /v1/processes/{key}":        s.startProcess,
		"GET /v1/processes":              s.listProcesses,
		"GET /v1/processes/{id}":         s.getProcess,
		"GET /v1/processes/{id}/output":  s.output,
		"POST /v1/processes/{id}/signal": decoded(s.signal),
		"POST /v1/sessions/{key}":        s.session,
		"POST /v1/read":                  decoded(s.read),
		"POST /v1/edits":                 s.edit,
		"POST /v1/search":                decoded(s.search),
		"/":                              func(_ http.ResponseWriter, r *http.Request) error { return noSuchRequest(r) },
	} {
		mux.HandleFunc(pattern, s.handle(handler))
	}
	return mux
}

// handle answers with the error of a handler. One that returns nil has answered.
func (s *Server) handle(handler func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handler(w, r); err != nil {
			s.turnAway(w, r, err)
		}
	}
}

func noSuchRequest(r *http.Request) error {
	return refuse(protocol.BadRequest, "The agent knows no request %.10q of %.100q.", r.Method, r.URL.Path)
}

// recoverPanic answers a request whose handler has panicked, and logs where.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	what := recover()
	if what == nil {
		return
	}
	if what == http.ErrAbortHandler { //nolint:errorlint // It is this very value.
		panic(what)
	}
	s.options.Log.ErrorContext(r.Context(), "A request panicked", "method", r.Method, "stack", string(debug.Stack()))
	s.turnAway(w, r, refuse(protocol.Internal, "The agent of the workspace failed."))
}
