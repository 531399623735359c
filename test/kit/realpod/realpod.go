// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realpod does in a test's own process what the generator in a generation pod does, with the real runner.
package realpod

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// Run does the named pod's work to the end of the test, with these tools.
// Every API key is there, and nobody follows along.
func Run(t *testing.T, cfg *rest.Config, namespace, pod string, offered ...tools.Tool) {
	t.Helper()
	c, err := apiclient.New(cfg, "parley-generator")
	check.OK(t, err)
	network := httpguard.Settings{Loopback: true}
	shared := network.Client()
	r := runner.New(runner.Options{
		Namespace: namespace, Pod: pod, Client: c, Relay: deafRelay{}, Network: network, HTTP: shared,
		Keys:  func(string, string) ([]byte, error) { return []byte("sk-any"), nil },
		Tools: tools.NewRegistry(offered...), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, ctx) }()
	t.Cleanup(func() {
		stop()
		check.Equal(t, "the runner ended with", nil, <-ended)
		shared.CloseIdleConnections()
	})
}

// deafRelay drops every part.
type deafRelay struct{}

// Open implements runner.Relay.
func (deafRelay) Open(context.Context, fence.Fence) (runner.Episode, error) {
	return deafRelay{}, nil
}

// SoFar implements runner.Relay.
func (deafRelay) SoFar(context.Context, fence.Fence) ([]parts.Frame, error) { return nil, nil }

// Publish implements runner.Episode.
func (deafRelay) Publish(string, parts.Part) {}

// Close implements runner.Episode.
func (deafRelay) Close(context.Context) error { return nil }
