// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves the requests of package protocol to generation pods.
//
// A request has a service-account token of a generation pod of this namespace, and names the chat that the workspace is
// bound to. Those for changes and for copies of files have one of the gateway, which gets no other answer. The first
// binding never changes. While it cannot be read, all requests are refused. The number, the size and the time of
// requests are bounded.
//
// Logs have no token and no content of a request. Errors are cleaned before they are logged.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/workspace/agent/files"
	"parley.dev/parley/internal/workspace/agent/review"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// headerTimeout bounds how long the header of a request takes.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long an idle connection is kept.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes bounds the header of a request: a token takes 2 KiB of it.
	maxHeaderBytes = 64 << 10
	// drain is how long requests may take to end when the agent stops.
	drain = 2 * time.Second
)

// Authorizer decides whether a bearer token may use the workspace. It returns satoken.ErrUnauthenticated or
// satoken.ErrForbidden, wrapped, if not, and satoken.ErrNoKeys if it cannot tell yet.
type Authorizer interface {
	Authorize(ctx context.Context, token string) error
}

// Options say what is served, and to whom.
type Options struct {
	// Directory of the workspace's files, absolute. It must exist.
	Directory string
	// State is the directory for the binding and the journal of changes, absolute. It must live as long as the files.
	State string
	// Authorizer of every request but that for health, such as a satoken.Verifier.
	Authorizer Authorizer
	// Viewers authorizes requests for changes, and for copies of files, in the place of Authorizer.
	Viewers Authorizer
	// Run runs git for those.
	Run review.Run
	// Processes are the commands of the workspace.
	Processes Processes
	Log       *slog.Logger
}

// Server serves one workspace.
type Server struct {
	options Options
	files   *files.Files
	binding *binding
	// atWork limits requests, and waiting those that wait for a command.
	atWork, waiting limit.Limiter
	// sessions limits commands with a session, and large the bodies in memory.
	sessions, large limit.Limiter
	// reviews limits requests for changes, which git answers, and archives those for copies, which slow readers hold.
	reviews, archives limit.Limiter
	routes            http.Handler
}

const (
	// maxAtWork is what a node's processors and disk can handle, and more than one chat asks for.
	maxAtWork = 64
	// maxWaiting is several times the limit of commands. A request that waits costs only a connection.
	maxWaiting = 256
	// maxSessions is more MCP servers than the chats of a family use at once.
	maxSessions = 32
	// maxArchives is how many people copy files at once.
	maxArchives = 8
	// maxLarge bounds the memory for contents and edits: each takes up to 16 MiB several times.
	maxLarge = 4
)

// New opens a workspace, and settles unfinished changes of files.
func New(o Options) (*Server, error) {
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	opened, err := files.Open(files.Options{Directory: o.Directory, State: filepath.Join(o.State, "files"),
		Log: o.Log})
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, files: opened, binding: &binding{file: filepath.Join(o.State, "binding.json")},
		atWork: limit.New(maxAtWork), waiting: limit.New(maxWaiting),
		sessions: limit.New(maxSessions), large: limit.New(maxLarge), reviews: limit.New(1),
		archives: limit.New(maxArchives)}
	if s.binding.chat, s.binding.err = readBinding(s.binding.file); s.binding.err != nil {
		o.Log.Error("The workspace's binding cannot be read: refusing all requests", "error", s.binding.err)
	}
	s.routes = s.handlers()
	return s, nil
}

// Run serves until ctx is done, and closes the listener and the files. It is called once.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return serving },
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { failed <- server.Serve(listener) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	draining, cancel := context.WithTimeout(serving, drain)
	defer cancel()
	if server.Shutdown(draining) != nil {
		stop()
		_ = server.Close()
	}
	running.Wait()
	stop()
	_, _ = s.sessions.Acquire(context.WithoutCancel(ctx), s.sessions.Size) // It waits until all have ended.
	closed := s.files.Close()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(fmt.Errorf("serving: %w", err), closed)
	}
	return closed
}

const (
	// bodyTimeout bounds how long the body of a request takes, and contentTimeout that of a file.
	bodyTimeout, contentTimeout = 30 * time.Second, 2 * time.Minute
	// restTimeout bounds how long the rest of a body takes that is discarded.
	restTimeout = 5 * time.Second

	processesPath = "/v1/processes/"
	sessionsPath  = "/v1/sessions/"
	bindingPath   = "/v1/binding"
	healthPath    = "/v1/health"
	changesPath   = "/v1/changes"
	patchPath     = "/v1/patch"
	treePath      = "/v1/tree"
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
	if err := s.admit(w, r); err != nil {
		s.turnAway(w, r, err)
		return
	}
	s.routes.ServeHTTP(w, r)
}

// limiterOf is the limiter of a request, and the refusal if its limit is reached.
func (s *Server) limiterOf(r *http.Request) (limit.Limiter, error) {
	full := refuse(protocol.Unavailable, "The workspace has as many requests as it takes. Try again.")
	switch {
	case strings.HasPrefix(r.URL.Path, sessionsPath):
		return s.sessions, refuse(protocol.TooMany, "%d programs of MCP servers run in the workspace, which is the limit.",
			s.sessions.Size)
	case isReview(r):
		return s.reviews, full
	case r.URL.Path == treePath && r.Method == http.MethodGet:
		return s.archives, full
	case strings.HasPrefix(r.URL.Path, processesPath) && r.URL.Query().Has("wait"):
		return s.waiting, full
	}
	return s.atWork, full
}

// turnAway refuses a request whose body may be unread.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if r.Body != http.NoBody {
		w.Header().Set("Connection", "close")
		_ = readWithin(w, restTimeout) // The connection is closed in any case.
	}
	s.refuseRequest(w, r, err)
}

// admit checks who sent a request, and for which chat, and bounds the time in which its body arrives.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) error {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return fmt.Errorf("%w: there is no bearer token", satoken.ErrUnauthenticated)
	}
	authorizer := s.options.Authorizer
	if isReview(r) || r.URL.Path == treePath {
		authorizer = s.options.Viewers
	}
	if err := authorizer.Authorize(r.Context(), token); err != nil {
		return err
	}
	if r.URL.Path != bindingPath {
		if err := s.binding.check(r.Header.Get(protocol.HeaderChat)); err != nil {
			return err
		}
	}
	if path.Clean(r.URL.Path) != r.URL.Path { // ServeMux would redirect it.
		return unknownRequest(w, r)
	}
	return readWithin(w, bodyTimeout)
}

// isReview reports whether a request is for what is changed.
func isReview(r *http.Request) bool { return r.URL.Path == changesPath || r.URL.Path == patchPath }

// handler answers a request, or returns the error to answer with.
type handler func(w http.ResponseWriter, r *http.Request) error

func (s *Server) handlers() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]handler{
		"PUT " + bindingPath:             call(s.bind),
		"GET /v1/info":                   s.info,
		"PUT /v1/processes/{key}":        call(s.startProcess),
		"GET /v1/processes":              s.listProcesses,
		"GET /v1/processes/{id}":         s.getProcess,
		"GET /v1/processes/{id}/output":  s.output,
		"POST /v1/processes/{id}/signal": call(s.signal),
		"POST /v1/sessions/{key}":        s.session,
		"GET /v1/files":                  s.sendFile,
		"PUT /v1/files":                  s.whenRoom(contentTimeout, s.writeFile),
		"POST /v1/read":                  call(s.read),
		"POST /v1/edits":                 s.whenRoom(bodyTimeout, call(s.edit)),
		"POST /v1/search":                call(s.search),
		"GET " + changesPath:             s.changes,
		"GET " + patchPath:               s.patch,
		"GET " + treePath:                sendArchive(s.files, s.options.Log),
		"PUT " + treePath:                s.whenRoom(contentTimeout, s.writeFile),
		"/":                              unknownRequest,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(w, r); err != nil {
				s.turnAway(w, r, err)
			}
		})
	}
	return mux
}

// call is the handler of a request whose body is a T, and whose answer is a value.
func call[T, A any](do func(*http.Request, *T) (A, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := decode[T](w, r)
		if err != nil {
			return err
		}
		value, err := do(r, body)
		if err != nil {
			return err
		}
		return answer(w, http.StatusOK, value)
	}
}

// whenRoom bounds how many large bodies are in memory, and the time in which each arrives.
func (s *Server) whenRoom(timeout time.Duration, handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		release, err := s.large.Acquire(r.Context(), 1)
		if err != nil {
			return err
		}
		defer release()
		if err := readWithin(w, timeout); err != nil {
			return err
		}
		return handle(w, r)
	}
}

func unknownRequest(_ http.ResponseWriter, r *http.Request) error {
	return refuse(protocol.BadRequest, "The agent knows no request %.10q of %.100q.", r.Method, r.URL.Path)
}

// recoverPanic answers a request whose handler panicked, and logs the stack.
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
