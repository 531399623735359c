// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
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
	// offered is how many of the listed tools are on offer, from the first.
	offered int

	mu     sync.Mutex
	opened *session
}

// Places are where the servers are whose entries have no url.
type Places struct {
	// Told is where those are that are references.
	Told []v1alpha1.MCPServerAddress
	// Workspace returns the agent that runs commands, or an error in words for people; nil: the chat has none.
	Workspace func(ctx context.Context) (*client.Client, error)
}

// Offer asks the servers, all at once, what they offer. It takes as long as the slowest of them, at most its connect
// timeout, for a command twice that, and nothing where the answers are known.
func (s *Servers) Offer(ctx context.Context, servers []v1alpha1.MCPServer, places Places) *Offer {
	o := &Offer{}
	var asking sync.WaitGroup
	for i := range servers {
		from := &source{servers: s}
		from.server, from.failure = located(&servers[i], places.Told)
		o.sources = append(o.sources, from)
		if from.failure == nil {
			asking.Go(func() { from.ask(ctx, places) })
		}
	}
	asking.Wait()
	o.bound()
	return o
}

// maxTools is how many tools of all servers are on offer at most: 96. OpenAI takes 128 in a request, and Parley has
// some of its own.
const maxTools = 96

// bound offers the tools of the first servers, as many as fit.
func (o *Offer) bound() {
	room := maxTools
	for _, f := range o.sources {
		if f.listed != nil {
			f.offered = min(len(f.listed.definitions), room)
			room -= f.offered
		}
	}
}

func (f *source) ask(ctx context.Context, places Places) {
	var err error
	if f.endpoint, f.failure = f.servers.endpoint(ctx, f.server, places); f.failure != nil {
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
	o.known(func(f *source, d *definition, offered bool) {
		if offered {
			all = append(all, tool{d, f})
		}
	})
	return all
}

// known visits all tools that the servers have, those that are not on offer included.
func (o *Offer) known(visit func(f *source, d *definition, offered bool)) {
	if o == nil {
		return
	}
	for _, f := range o.sources {
		if f.listed == nil {
			continue
		}
		for i := range f.listed.definitions {
			visit(f, &f.listed.definitions[i], i < f.offered)
		}
	}
}

// Hashes are those of the definitions that are on offer, by the names that the model calls.
func (o *Offer) Hashes() map[string]string {
	hashes := map[string]string{}
	o.known(func(_ *source, d *definition, offered bool) {
		if offered {
			hashes[d.name] = d.hash
		}
	})
	return hashes
}

// RequiresApproval reports whether the entry of its server names the tool in requireApproval.
func (o *Offer) RequiresApproval(name string) (required bool) {
	o.known(func(f *source, d *definition, _ bool) {
		required = required || d.name == name && toolpolicy.Matches(f.server.RequireApproval, d.own)
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
		if f.failure != nil {
			all = append(all, Warning{f.server.Name, f.failure.words})
			continue
		}
		for _, words := range []string{f.listed.note(), f.excess()} {
			if words != "" {
				all = append(all, Warning{f.server.Name, words})
			}
		}
	}
	return all
}

// excess says how many tools are left out because those of all servers are too many; empty if none is.
func (f *source) excess() string {
	left := f.listed.definitions[f.offered:]
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of its tools, %.60q first, are too many: a model is offered %d of all servers, of the first "+
		"entries first; see tools.allow", len(left), printable.Line(left[0].own), maxTools)
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
