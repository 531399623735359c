// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultclient stands between one process and the API server. It counts the process's writes, lets one of them
// go wrong, lets the process die there, and lets its watches lag.
//
// It works on the level of HTTP requests, so that it covers every client of a process alike: a manager's client, its
// status writer, its reader past the cache, its recorder of Events and its informers. What it makes of a request is
// what a network and an API server can make of it: the server has acted or it has not, and the caller learns of it or
// does not. A process that has died sends nothing and hears nothing any more, whatever its goroutines still try.
package faultclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ErrDead is what a process that has died gets for each request.
var ErrDead = errors.New("the process has died")

// Effect is what becomes of a request.
type Effect int

const (
	// Fails means that the request never reaches the server; its caller gets a connection error.
	Fails Effect = iota
	// TimesOut means that the server gets the request and acts on it; its caller gets a timeout.
	TimesOut
	// Conflicts means that the caller gets the status 409 Conflict, and the request never reaches the server.
	Conflicts
	// Passes means that nothing is wrong with the request itself.
	Passes
)

// Fault is one thing that goes wrong, once, in the life of a process.
type Fault struct {
	// At picks the write: the first one for which it is true. n is the write's number in the process, from 1.
	At func(n int, w Write) bool
	// Effect on the write.
	Effect Effect
	// Before, if set, is called before the request is sent, as somebody else's doing at this very moment.
	Before func(ctx context.Context)
	// Dies lets the process die right after the write, or instead of a write that fails.
	Dies bool
}

// Options of a process.
type Options struct {
	// Fault that happens; nil: none.
	Fault *Fault
	// WatchDelay is how much later than the server sends them the process gets the events about a resource, such as
	// "chats"; nil: not at all later. The events of one resource stay in order; those of two can come out of order.
	WatchDelay func(resource string) time.Duration
}

// Process is the traffic of one process with the API server.
type Process struct {
	options Options
	alive   context.Context
	die     context.CancelCauseFunc

	mu        sync.Mutex
	writes    []Write
	counts    map[Write]int
	struck    bool
	lastBegun time.Time
}

// New returns a process that lives until Kill or its fault ends it.
func New(o Options) *Process {
	p := &Process{options: o, counts: map[Write]int{}, lastBegun: time.Now()}
	p.alive, p.die = context.WithCancelCause(context.Background())
	return p
}

// Config is a copy of cfg whose clients are the process's.
func (p *Process) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{process: p, next: next} })
	return cfg
}

// Kill lets the process die now.
func (p *Process) Kill() { p.die(ErrDead) }

// Dead is closed once the process has died.
func (p *Process) Dead() <-chan struct{} { return p.alive.Done() }

// Struck reports whether the fault has happened.
func (p *Process) Struck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

// Writes lists what the process has begun to write, in order.
func (p *Process) Writes() []Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Write(nil), p.writes...)
}

// Idle is the time since the process began its last request, of whatever kind, or its life.
func (p *Process) Idle() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.lastBegun)
}

// begins records that a request begins.
func (p *Process) begins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastBegun = time.Now()
}

// count records the write and returns the fault if this is its moment.
func (p *Process) count(w Write) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[w]++
	w.Nth = p.counts[w]
	p.writes = append(p.writes, w)
	if f := p.options.Fault; f != nil && !p.struck && f.At(len(p.writes), w) {
		p.struck = true
		return f
	}
	return nil
}

func (p *Process) watchDelay(resource string) time.Duration {
	if p.options.WatchDelay == nil {
		return 0
	}
	return p.options.WatchDelay(resource)
}
