// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Ports where the programs serve their metrics, and nothing else. The manager serves its own through controller-runtime.
const (
	// GeneratorPort of generation pods.
	GeneratorPort = 8082
	// RelayPort of the sidecar in generation pods.
	RelayPort = 7071
	// GatewayPort of gateways.
	GatewayPort = 8082
)

// NewRegistry returns a registry with what Go and the process say of themselves.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Serve answers GET /metrics at the address until ctx is done; an empty address or 0 serves nobody. It returns once it
// listens; what it returns waits for the end of it.
func Serve(ctx context.Context, address string, from prometheus.Gatherer) (wait func(), err error) {
	if address == "" || address == "0" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for scrapers: %w", err)
	}
	return serve(ctx, listener, from), nil
}

func serve(ctx context.Context, listener net.Listener, from prometheus.Gatherer) (wait func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		defer close(ended)
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			_ = listener.Close()
		}
	}()
	return func() { <-ended }
}
