// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/workspace/agent/files"
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
	routes          http.Handler
}

const (
	// maxAtWork is what a node's processors and disk can handle, and more than one chat asks for.
	maxAtWork = 64
	// maxWaiting is several times the limit of commands. A request that waits costs only a connection.
	maxWaiting = 256
	// maxSessions is more MCP servers than the chats of a family use at once.
	maxSessions = 32
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
		sessions: limit.New(maxSessions), large: limit.New(maxLarge)}
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
