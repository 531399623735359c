// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// Offer is what the servers of a chat offer to one step, and the sessions that its calls open.
type Offer struct {
	sources []*source
}

// source is one server of an offer.
type source struct {
	servers  *Servers
	server   *v1alpha1.MCPServer
	endpoint *endpoint
	listed   *listed
	failure  *failure

	mu     sync.Mutex
	opened *session
}

// Offer asks the servers, all at once, what they offer; told is where those are that are references. It takes as long
// as the slowest of them, at most its connect timeout, and nothing where the answers are known.
func (s *Servers) Offer(ctx context.Context, servers []v1alpha1.MCPServer, told []v1alpha1.MCPServerAddress) *Offer {
	o := &Offer{}
	var asking sync.WaitGroup
	for i := range servers {
		from := &source{servers: s}
		from.server, from.failure = located(&servers[i], told)
		o.sources = append(o.sources, from)
		if from.failure == nil {
			asking.Go(func() { from.ask(ctx) })
		}
	}
	asking.Wait()
	return o
}

func (f *source) ask(ctx context.Context) {
	var err error
	if f.endpoint, f.failure = f.servers.endpoint(f.server); f.failure != nil {
		return
	}
	if f.listed, err = f.servers.list(ctx, f.endpoint); err == nil {
		return
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		f.failure = failed
		return
	}
	f.failure = &failure{reason: v1alpha1.MCPTimedOut, words: "the step ended before it answered"}
}

// Tools are what can be called.
func (o *Offer) Tools() (all []tools.Tool) {
	o.each(func(f *source, d *definition) { all = append(all, f.tool(d)) })
	return all
}

func (o *Offer) each(visit func(f *source, d *definition)) {
	if o == nil {
		return
	}
	for _, f := range o.sources {
		if f.listed == nil {
			continue
		}
		for i := range f.listed.definitions {
			visit(f, &f.listed.definitions[i])
		}
	}
}

// Hashes are those of the definitions, by the names that the model calls.
func (o *Offer) Hashes() map[string]string {
	hashes := map[string]string{}
	o.each(func(_ *source, d *definition) { hashes[d.name] = d.hash })
	return hashes
}

// RequiresApproval reports whether the entry of its server names the tool in requireApproval.
func (o *Offer) RequiresApproval(name string) (required bool) {
	o.each(func(f *source, d *definition) {
		required = required || d.name == name && matches(f.server.RequireApproval, d.own)
	})
	return required
}

// Unavailable are the servers that cannot be used.
func (o *Offer) Unavailable() (all []v1alpha1.MCPServerUnavailable) {
	if o == nil {
		return nil
	}
	for _, f := range o.sources {
		if f.failure != nil {
			all = append(all, v1alpha1.MCPServerUnavailable{Name: f.server.Name, Reason: f.failure.reason,
				Message: f.failure.words})
		}
	}
	return all
}

// Warning is something that the model is not offered.
type Warning struct{ Server, Words string }

// Warnings say which servers the model is asked without, and which ones have more tools than are offered.
func (o *Offer) Warnings() (all []Warning) {
	if o == nil {
		return nil
	}
	for _, f := range o.sources {
		switch {
		case f.failure != nil:
			all = append(all, Warning{f.server.Name, f.failure.words})
		case f.listed.note() != "":
			all = append(all, Warning{f.server.Name, f.listed.note()})
		}
	}
	return all
}

// Absent says why there is no tool of that name, if its server cannot be used.
func (o *Offer) Absent(name string) error {
	for _, f := range o.sources {
		if f.failure != nil && f.server.Name == ServerOf(name) {
			return fmt.Errorf("tool %q cannot be called now, because MCP server %s cannot be used: %s", name, f.server.Name,
				f.failure.words)
		}
	}
	return nil
}

// Close ends the sessions that calls have opened.
func (o *Offer) Close() {
	if o == nil {
		return
	}
	for _, f := range o.sources {
		f.mu.Lock()
		if f.opened != nil {
			f.opened.close()
			f.opened = nil
		}
		f.mu.Unlock()
	}
}

// session is the one that the calls of the step share. The error is a *failure, or that of ctx.
func (f *source) session(ctx context.Context) (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened != nil {
		return f.opened, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.server.ConnectTimeout())
	defer cancel()
	opened, err := f.servers.connect(ctx, f.endpoint, f.servers.recall(f.endpoint).client)
	if err != nil {
		f.servers.forget(f.endpoint)
		return nil, err
	}
	if opened.stateless() && f.listed.inHeaders() {
		if _, _, err := opened.tools(ctx); err != nil { // The call says what is wrong.
			f.servers.forget(f.endpoint)
		}
	}
	f.opened = opened
	return opened, nil
}

// inHeaders reports whether arguments of a tool are to be sent in headers, too.
func (l *listed) inHeaders() bool {
	for i := range l.definitions {
		if l.definitions[i].inHeaders {
			return true
		}
	}
	return false
}
