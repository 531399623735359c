// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"parley.dev/parley/api/stream"
)

const (
	// drain is how long streams get to say that they end, and other requests to be answered.
	drain = 2 * time.Second
	// headerTimeout bounds how long a client takes to say what it wants, handshake included.
	headerTimeout = 10 * time.Second
	// readTimeout bounds how long it takes for a whole request, and for the answer to one that is no stream.
	readTimeout = 30 * time.Second
	// idleTimeout is how long a connection is kept for a next request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes bounds what a request says besides its body, of which there is none.
	maxHeaderBytes = 64 << 10
)

// Serve serves until ctx is done. Streams then end with a word, and their clients resume elsewhere. Certificates: see
// TLS; nil serves plain HTTP. It returns when nothing of the gateway runs any more.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener, certificates *tls.Config) error {
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	server := g.server(serving)
	server.TLSConfig = certificates
	var running sync.WaitGroup
	failed := make(chan error, 1)
	running.Go(func() { g.Run(serving) })
	running.Go(func() {
		if certificates != nil {
			failed <- server.ServeTLS(listener, "", "")
			return
		}
		failed <- server.Serve(listener)
	})
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop(&stream.Closing{Reason: stream.ClosingShutdown, Message: "the gateway is shutting down: come back"})
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err = errors.Join(err, server.Shutdown(draining), server.Close())
	running.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// server is the HTTP server; ctx is the parent of all requests'.
func (g *Gateway) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           g.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       g.readTimeout, // streams put it off
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(g.config.Log.Handler(), slog.LevelDebug),
	}
}
