// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp calls tools of servers of the Model Context Protocol.
//
// A server's headers go to its own host alone. All that a server sends is bounded. Lists and failures are cached for a
// limited time, and only for the entry that they belong to. An unavailable server delays a step by at most its connect
// timeout, and the next steps not at all until the failure may have passed.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/internal/netguard/httpguard"
)

const (
	// maxPages and maxListed bound the list of a server's tools.
	maxPages, maxListed = 32, 1000
	// defaultTTL is how long a list counts if the server does not say so. The server can choose from minTTL to maxTTL.
	defaultTTL, minTTL, maxTTL = 5 * time.Minute, 10 * time.Second, time.Hour
	// firstRetry is the time until a failed server is asked again. It doubles with each failure, up to maxRetry, which
	// also follows a connect timeout.
	firstRetry, maxRetry = 15 * time.Second, defaultTTL
	// maxCached bounds the cache. Its entries expire when they have not been used for unusedTTL.
	maxCached, unusedTTL = 256, 30 * time.Minute
)

// Options of Servers. All are required but Hosts.
type Options struct {
	// Namespace of the chats, for failures.
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
	cache   map[string]*cached // by endpoint.key
}

// cached is the state of an endpoint.
type cached struct {
	client *http.Client
	// list or failure count until then.
	list    *listed
	failure *failure
	until   time.Time
	// failures in a row.
	failures int
	used     time.Time
}

// listed are the tools of a server, and for how long the list counts.
type listed struct {
	selection
	ttl time.Duration
}

// New returns servers with an empty cache.
func New(o Options) *Servers { return &Servers{options: o, cache: map[string]*cached{}} }

// list returns the tools of the server, from the cache or from the server. The error is a *failure, or that of ctx.
func (s *Servers) list(ctx context.Context, e *endpoint) (*listed, error) {
	switch c := s.recall(e); {
	case c.failure != nil:
		return nil, c.failure
	case c.list != nil:
		return c.list, nil
	}
	// Chats share a request, and none of them cancels it for the others.
	shared := context.WithoutCancel(ctx)
	answer := s.flights.DoChan(e.key, func() (any, error) {
		shared, cancel := context.WithTimeout(shared, e.server.ConnectTimeout())
		defer cancel()
		list, err := s.fetch(shared, e, s.recall(e).client)
		s.remember(e, list, err)
		return list, err
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case result := <-answer:
		return result.Val.(*listed), result.Err
	}
}

// fetch requests the tools from the server. The error is a *failure, or that of ctx.
func (s *Servers) fetch(ctx context.Context, e *endpoint, client *http.Client) (*listed, error) {
	opened, err := s.connect(ctx, e, client)
	if err != nil {
		return nil, err
	}
	defer opened.close()
	ctx, notes := httpguard.WithNotes(ctx, s.options.Now)
	all, ttl, err := opened.tools(ctx)
	if err != nil {
		return nil, s.logFailure(ctx, e, opened.line.failure(ctx, err, notes, e.secrets), err)
	}
	return &listed{selection: choose(e.server, all, e.secrets), ttl: ttl}, nil
}

// tools are all that the server lists, and for how long the list counts.
func (s *session) tools(ctx context.Context) (all []*sdk.Tool, ttl time.Duration, err error) {
	ttl = defaultTTL
	if can := s.joined.InitializeResult().Capabilities; can == nil || can.Tools == nil {
		return nil, ttl, nil
	}
	cursor := ""
	for range maxPages {
		page, err := s.joined.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, 0, err
		}
		if chosen := time.Duration(page.TTLMs) * time.Millisecond; chosen > 0 {
			ttl = min(max(chosen, minTTL), maxTTL)
		}
		if all = append(all, page.Tools...); len(all) > maxListed {
			break
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, ttl, nil
		}
	}
	return nil, 0, fail(v1beta1.MCPResponseInvalid, "its list of tools has no end")
}

// recall is the cached state of the endpoint that still counts.
func (s *Servers) recall(e *endpoint) cached {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	c := s.cache[e.key]
	if c == nil {
		s.evict(now)
		c = &cached{client: s.newClient(e)}
		s.cache[e.key] = c
	}
	c.used = now
	if !now.Before(c.until) {
		c.list, c.failure = nil, nil
	}
	return *c
}

// newClient returns a client for the server at its url; nil if it has none.
func (s *Servers) newClient(e *endpoint) *http.Client {
	switch {
	case e.url == nil:
		return nil
	case e.roots != nil:
		return httpguard.Trusting(s.options.HTTP(), e.roots)
	}
	return s.options.HTTP()
}

// remember caches the result of fetch.
func (s *Servers) remember(e *endpoint, list *listed, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cache[e.key]
	if c == nil {
		return
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		wait := maxRetry
		if !failed.slow {
			wait = min(maxRetry, firstRetry<<min(c.failures, 8))
		}
		c.failures++
		c.list, c.failure, c.until = nil, failed, s.options.Now().Add(wait)
	} else if err == nil {
		c.list, c.failure, c.failures, c.until = list, nil, 0, s.options.Now().Add(list.ttl)
	}
}

// forget removes the list of a server, which has probably changed.
func (s *Servers) forget(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cache[e.key]; c != nil {
		c.list = nil
	}
}

// evict makes room in the cache. The caller holds mu.
func (s *Servers) evict(now time.Time) {
	oldest := ""
	for key, c := range s.cache {
		if now.Sub(c.used) >= unusedTTL {
			s.drop(key)
		} else if oldest == "" || c.used.Before(s.cache[oldest].used) {
			oldest = key
		}
	}
	if len(s.cache) >= maxCached {
		s.drop(oldest)
	}
}

func (s *Servers) drop(key string) {
	if client := s.cache[key].client; client != nil {
		client.CloseIdleConnections()
	}
	delete(s.cache, key)
}
