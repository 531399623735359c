// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// socketMode admits only the generator, by its group.
	socketMode = 0o660
	// sweepEvery is how often old episodes are removed.
	sweepEvery = time.Second
	// drain is how long subscribers have to read the rest when the relay stops.
	drain = 2 * time.Second
	// headerTimeout bounds the time for a request's header.
	headerTimeout = 10 * time.Second
	// readTimeout bounds the time for a request of a gateway, which has no body.
	readTimeout = 30 * time.Second
	// idleTimeout is how long a connection is kept for a next request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes bounds the header of a request: a token takes 2 KiB of it.
	maxHeaderBytes = 64 << 10
)

// Server is the sidecar: a unix socket for the generator, and a TCP listener for gateways.
type Server struct {
	// Subscribers serves gateways, from the Store that the generator fills.
	Subscribers *Subscribers
	// Local listens for the generator.
	Local net.Listener
	// Keys are the issuer's keys, which the generator sends; nil: none are requested.
	Keys *IssuerKeys
	// Public listens for gateways.
	Public net.Listener
	// Log, default slog.Default.
	Log *slog.Logger
}

// ListenLocal makes the unix socket. It replaces the socket of an earlier process, but no other file.
func ListenLocal(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() == fs.ModeSocket:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the old socket: %w", err)
		}
	case err == nil:
		return nil, fmt.Errorf("listening on %s: there is a file that is no socket", path)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for the generator: %w", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("letting the generator's group use the socket: %w", err), listener.Close())
	}
	return listener, nil
}

// Run serves until ctx is done, and closes both listeners.
func (s *Server) Run(ctx context.Context) error {
	s.Log = cmp.Or(s.Log, slog.Default())
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	local := s.server(serving, LocalHandler(s.Subscribers.Store, s.Keys))
	public := s.server(serving, s.Subscribers.Handler())
	// The generator's requests last as long as its attempts.
	public.ReadTimeout, public.IdleTimeout = readTimeout, idleTimeout
	failed := make(chan error, 2)
	var running sync.WaitGroup
	running.Go(func() { failed <- local.Serve(s.Local) })
	running.Go(func() { failed <- public.Serve(s.Public) })
	running.Go(func() { s.sweep(serving) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	draining, cancel := context.WithTimeout(serving, drain)
	defer cancel()
	if public.Shutdown(draining) != nil {
		stop()
		_ = public.Close()
	}
	stop()
	_ = local.Close()
	running.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func (s *Server) server(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
}

func (s *Server) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.Subscribers.Store.Collect(); err != nil {
				s.Log.WarnContext(ctx, "collect episodes", "error", err)
			}
		}
	}
}
