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
	// lameDuck is how long a gateway that is to stop still serves, while it is not ready: when its streams end, no new
	// clients are sent to it.
	lameDuck = 3 * time.Second
	// drain is how long streams have to send their last event, and other requests to be answered.
	drain = 2 * time.Second
	// headerTimeout bounds the time for a request's header, with the TLS handshake.
	headerTimeout = 10 * time.Second
	// readTimeout bounds the time for a whole request, and for an answer that is no stream.
	readTimeout = 30 * time.Second
	// idleTimeout is how long a connection is kept for a next request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes bounds the header of a request.
	maxHeaderBytes = 64 << 10
)

// Serve serves until ctx is done. Then the gateway is no longer ready, and after a while its streams end with a closing
// event: their clients resume elsewhere at once. Certificates: see TLS; nil serves plain HTTP. It returns when no
// goroutine of the gateway runs.
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
		g.stopping.Store(true)
		server.SetKeepAlivesEnabled(false)
		err = g.serveOn(failed)
	case err = <-failed:
	}
	stop(&stream.Closing{Reason: stream.ClosingShutdown, Message: "the gateway is shutting down: reconnect"})
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err = errors.Join(err, server.Shutdown(draining), server.Close())
	running.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// serveOn waits until no new clients come.
func (g *Gateway) serveOn(failed <-chan error) error {
	select {
	case <-time.After(g.lameDuck):
		return nil
	case err := <-failed:
		return err
	}
}

// server is the HTTP server; ctx is the parent of all requests'.
func (g *Gateway) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           g.Handler(), //nolint:contextcheck // Requests have contexts of their own.
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       g.readTimeout, // streams lift it
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(g.config.Log.Handler(), slog.LevelDebug),
	}
}

// certificateAge is how long a certificate is served before its files are read again.
const certificateAge = 10 * time.Second

// certificate is that of two files, which may be replaced. They are read when a client connects, at most every ten
// seconds. If they cannot be read, perhaps because they are being replaced, the last good pair is used.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu     sync.Mutex
	loaded *tls.Certificate
	read   time.Time
}

// TLS is the configuration of a server whose certificate and key are in two PEM files. It fails if they cannot be read
// now. now returns the current time.
func TLS(certFile, keyFile string, log *slog.Logger, now func() time.Time) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: now}
	if err := c.load(now()); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.read) >= certificateAge {
		if err := c.load(now); err != nil {
			c.log.Warn("the certificate is not replaced", "error", err)
		}
	}
	return c.loaded, nil
}

// load reads the files. The caller holds mu, or is the only one.
func (c *certificate) load(now time.Time) error {
	c.read = now
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	c.loaded = &pair
	return nil
}
