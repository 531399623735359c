// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry with what Go and the process say of themselves.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Serve answers GET /metrics at the address until ctx is done, and with profiling what Profiles serves; an empty
// address or 0 disables it. It returns once it listens.
func Serve(ctx context.Context, address string, from prometheus.Gatherer, profiling bool) error {
	if address == "" || address == "0" {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening for scrapers: %w", err)
	}
	server := &http.Server{
		Handler: Handler(from, profiling), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second,
		IdleTimeout:  2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // Until the server is closed.
	return nil
}

// Handler serves /metrics, with profiling what Profiles serves, and nothing else.
func Handler(from prometheus.Gatherer, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	if profiling {
		for path, handler := range Profiles() {
			mux.Handle("GET "+path, handler)
		}
	}
	return mux
}

// Profiles are the handlers of Go's profiles of this process, by their paths: of its CPU, and the others by their
// names, such as heap. They tell where in the program time and memory go, and nothing of what is in that memory.
func Profiles() map[string]http.Handler {
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
	}
}
