// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realrelay runs a relay in the process of a test.
package realrelay

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/kit/check"
)

// Relay is a relay that can be stopped and started again at the same socket and address.
type Relay struct {
	// Socket is that for the generator, and Address that for gateways.
	Socket, Address string
	// Subscribers serve gateways since the last start.
	Subscribers *relay.Subscribers

	t         testing.TB
	configure func(*relay.Subscribers, *relay.IssuerKeys)
	stop      func()
}

// Start starts a relay at an address of TCP until the test ends. configure sets at least the authorizer, at each start.
func Start(t testing.TB, address string, configure func(*relay.Subscribers, *relay.IssuerKeys)) *Relay {
	t.Helper()
	r := &Relay{Socket: filepath.Join(t.TempDir(), "r.sock"), Address: address, t: t, configure: configure}
	r.Start()
	t.Cleanup(r.Stop)
	return r
}

// Start starts the relay again.
func (r *Relay) Start() {
	r.t.Helper()
	dir := filepath.Dir(r.Socket)
	store, err := relay.NewStore(relay.Options{MarkerDir: filepath.Join(dir, "episodes"), Now: time.Now})
	check.OK(r.t, err)
	local, err := relay.ListenLocal(r.Socket)
	check.OK(r.t, err)
	public, err := net.Listen("tcp4", r.Address)
	check.OK(r.t, err)
	r.Address = public.Addr().String()
	keys := &relay.IssuerKeys{File: filepath.Join(dir, "keys.json"), Now: time.Now}
	r.Subscribers = &relay.Subscribers{Store: store}
	r.configure(r.Subscribers, keys)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	server := &relay.Server{Local: local, Public: public, Keys: keys, Subscribers: r.Subscribers}
	go func() { done <- server.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
}

// Stop stops the relay, if it runs.
func (r *Relay) Stop() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// Port is that of the address.
func (r *Relay) Port() int {
	address, err := net.ResolveTCPAddr("tcp", r.Address)
	check.OK(r.t, err)
	return address.Port
}

// Anyone authorizes every token.
type Anyone struct{}

// Authorize implements relay.Authorizer.
func (Anyone) Authorize(context.Context, string) error { return nil }
