// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
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
	// headerTimeout bounds how long a client takes to say what it wants.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection is kept that carries no request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes bounds the header of a request: a token takes 2 KiB of it.
	maxHeaderBytes = 64 << 10
	// drain is how long requests get to end when the agent is told to stop.
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
	// State is the directory in which binding and changes are remembered, absolute. It is made if it is missing. It must
	// live as long as the files.
	State string
	// Authorizer of every request but that for health, such as a satoken.Verifier.
	Authorizer Authorizer
	// Processes are the commands of the workspace.
	Processes Processes
	// Log, default slog.Default.
	Log *slog.Logger
	// AtWork is how many requests are worked on at once, default 64. One more is answered with 503.
	AtWork int
	// Waiting is how many requests wait at once for commands, default 256. One more is answered with 503.
	Waiting int
	// Sessions is how many commands are spoken to at once, default 32. One more is refused.
	Sessions int
}

// Server serves one workspace.
type Server struct {
	options Options
	files   *files.Files
	binding *binding
	// atWork are requests, and waiting those that wait for the end of a command.
	atWork, waiting limit.Limiter
	// sessions are the commands that are spoken to.
	sessions limit.Limiter
	// large are the bodies that are held in memory at once.
	large  limit.Limiter
	routes http.Handler
}

const (
	// defaultAtWork is as many as one node's processors and disk can do with, and more than one chat asks for.
	defaultAtWork = 64
	// defaultWaiting is as many commands as a workspace runs at once, several times. Who waits costs a connection.
	defaultWaiting = 256
	// defaultSessions is more than the chats of a family have MCP servers at work at once.
	defaultSessions = 32
	// largeBodies bounds the memory for contents and edits: each takes up to 16 MiB, some times over.
	largeBodies = 4
)

func newLimiter(n, byDefault int) limit.Limiter { return limit.New(int64(cmp.Or(n, byDefault))) }

// New opens a workspace. Changes of files that a former life of the agent left unfinished are settled.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	opened, err := files.Open(files.Options{Directory: o.Directory, State: filepath.Join(o.State, "files"),
		Log: o.Log})
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, files: opened, binding: openBinding(filepath.Join(o.State, "binding.json")),
		atWork: newLimiter(o.AtWork, defaultAtWork), waiting: newLimiter(o.Waiting, defaultWaiting),
		sessions: newLimiter(o.Sessions, defaultSessions), large: limit.New(largeBodies)}
	if err := s.binding.fault(); err != nil {
		o.Log.Error("The workspace's binding cannot be read: refusing all requests", "error", err)
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
