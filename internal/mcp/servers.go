// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp calls tools of servers of the Model Context Protocol.
//
// Invariants: a server's headers go to its own host alone. Nothing that a server says is read without bounds, kept
// longer than it counts, or met by another entry than the one that it was asked for. A server that cannot be used costs
// a step at most its connect timeout, and that not again before the failure may have passed.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/internal/netguard/httpguard"
)

const (
	// quickRetry is after what time a server is asked again that failed at once: 15 s, each time twice that, and no later
	// than slowRetry, as one that took its connect timeout to fail.
	quickRetry = 15 * time.Second
	slowRetry  = keepFor
	// maxKnown is of how many entries something is kept, for unusedFor after they were used last.
	maxKnown  = 256
	unusedFor = 30 * time.Minute
)

// Options of Servers. All are required but Hosts.
type Options struct {
	// Namespace of the chats, for what a failure says.
	Namespace string
	// Hosts that servers may be called at; empty: all.
	Hosts hostlist.List
	// HTTP makes the client for one server, as httpguard.Settings.Client does, which shares its connections with no other.
	HTTP func() *http.Client
	// Secrets reads a key of a Secret; fs.ErrNotExist if there is none.
	Secrets func(secret, key string) ([]byte, error)
	// ConfigMap reads a key of a ConfigMap of the namespace; fs.ErrNotExist if there is none.
	ConfigMap func(ctx context.Context, name, key string) ([]byte, error)
	// Log gets what operators need to see; never content.
	Log *slog.Logger
	// Now returns the current time.
	Now func() time.Time
}

// Servers are the MCP servers of a generation pod's chats. It is safe for concurrent use.
type Servers struct {
	options Options
	flights singleflight.Group
	mu      sync.Mutex
	known   map[string]*known // by endpoint.key
}

// known is what is known of an entry.
type known struct {
	client *http.Client
	// list or failure count until then.
	list    *listed
	failure *failure
	until   time.Time
	// failures in a row.
	failures int
	used     time.Time
}

// New returns servers of which nothing is known yet.
func New(o Options) *Servers { return &Servers{options: o, known: map[string]*known{}} }

// list is what the server offers, as it was said last or, if that does not count any more, as it says now. The error is
// a *failure, or that of ctx.
func (s *Servers) list(ctx context.Context, e *endpoint) (*listed, error) {
	if k := s.recall(e); k.list != nil || k.failure != nil {
		if k.failure != nil {
			return nil, k.failure
		}
		return k.list, nil
	}
	// Several chats ask once, and none of them ends it for the others.
	asking := context.WithoutCancel(ctx)
	answer := s.flights.DoChan(e.key, func() (any, error) {
		asking, cancel := context.WithTimeout(asking, e.server.ConnectTimeout())
		defer cancel()
		list, err := s.fetch(asking, e, s.recall(e).client)
		s.remember(e, list, err)
		return list, err
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case told := <-answer:
		if told.Err != nil {
			return nil, told.Err
		}
		return told.Val.(*listed), nil
	}
}

// recall is what is known of the entry and still counts.
func (s *Servers) recall(e *endpoint) known {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	k := s.known[e.key]
	if k == nil {
		s.makeRoom(now)
		k = &known{client: s.clientOf(e)}
		s.known[e.key] = k
	}
	k.used = now
	if !now.Before(k.until) {
		k.list, k.failure = nil, nil
	}
	return *k
}

// clientOf is a client for the server at its url; nil if it has none.
func (s *Servers) clientOf(e *endpoint) *http.Client {
	switch {
	case e.url == nil:
		return nil
	case e.roots != nil:
		return httpguard.Trusting(s.options.HTTP(), e.roots)
	}
	return s.options.HTTP()
}

// remember keeps what came of asking.
func (s *Servers) remember(e *endpoint, list *listed, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[e.key]
	if k == nil {
		return
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		wait := slowRetry
		if !failed.slow {
			wait = min(slowRetry, quickRetry<<min(k.failures, 8))
		}
		k.failures++
		k.list, k.failure, k.until = nil, failed, s.options.Now().Add(wait)
		return
	}
	if err == nil {
		k.list, k.failure, k.failures, k.until = list, nil, 0, s.options.Now().Add(list.keep)
	}
}

// forget lets the server be asked again before its list runs out: it has shown that it is another one.
func (s *Servers) forget(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[e.key]; k != nil {
		k.list = nil
	}
}

// makeRoom forgets what nobody has used for long, and else what was used longest ago. The caller holds mu.
func (s *Servers) makeRoom(now time.Time) {
	oldest := ""
	for key, k := range s.known {
		if now.Sub(k.used) >= unusedFor {
			s.drop(key)
		} else if oldest == "" || k.used.Before(s.known[oldest].used) {
			oldest = key
		}
	}
	if len(s.known) >= maxKnown {
		s.drop(oldest)
	}
}

func (s *Servers) drop(key string) {
	if used := s.known[key].client; used != nil {
		used.CloseIdleConnections()
	}
	delete(s.known, key)
}
