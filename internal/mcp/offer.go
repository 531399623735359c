// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
)

// Offer has the tools that the servers of a chat offer to one step, and the sessions that its calls open. nil has none.
type Offer struct {
	sources []*source
	// tools of all servers. The first maxTools are on offer.
	tools []tool
}

// source is one server of an offer.
type source struct {
	servers  *Servers
	server   *v1beta1.MCPServer
	endpoint *endpoint
	listed   *listed
	failure  *failure

	mu     sync.Mutex
	opened *session
	// unopened is why a call of the step could not open the session: the others do not wait for the server again.
	unopened *failure
}

// Places locate the servers whose entries have no url.
type Places struct {
	// Told are the addresses of references.
	Told []v1beta1.MCPServerAddress
	// Workspace returns the agent that runs commands, or an error in words for people; nil: the chat has none.
	Workspace func(ctx context.Context) (*client.Client, error)
}

// Offer lists the tools of the servers, concurrently. It takes at most the longest connect timeout, for a command twice
// that and for one whose workspace has lost its pod four times, and no time if the lists are cached.
func (s *Servers) Offer(ctx context.Context, servers []v1beta1.MCPServer, places Places) *Offer {
	o := &Offer{}
	var asking sync.WaitGroup
	for i := range servers {
		from := &source{servers: s}
		from.server, from.failure = resolve(&servers[i], places.Told)
		o.sources = append(o.sources, from)
		if from.failure == nil {
			asking.Go(func() { from.ask(ctx, places) })
		}
	}
	asking.Wait()
	for _, f := range o.sources {
		if f.listed != nil {
			for i := range f.listed.definitions {
				o.tools = append(o.tools, tool{&f.listed.definitions[i], f})
			}
		}
	}
	return o
}

// maxTools bounds the tools of all servers on offer. OpenAI takes 128 in a request, and Parley has some of its own.
const maxTools = 96

// ask lists the tools of the server. It asks again in the pod that replaced the one of a command.
func (f *source) ask(ctx context.Context, places Places) {
	for range 2 {
		next, failed := f.servers.endpoint(ctx, f.server, places)
		if failed != nil {
			f.failure = failed
			return
		}
		if f.endpoint != nil && next.key == f.endpoint.key {
			return
		}
		f.endpoint = next
		if f.listed, f.failure = f.list(ctx); f.failure == nil || f.failure.reason != v1beta1.MCPWorkspaceNotReady {
			return
		}
	}
}

// list returns the tools of the endpoint, or why there are none.
func (f *source) list(ctx context.Context) (*listed, *failure) {
	all, err := f.servers.list(ctx, f.endpoint)
	if err == nil {
		return all, nil
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		return nil, failed
	}
	return nil, &failure{reason: v1beta1.MCPTimedOut, words: "the step ended before it answered"}
}

func (o *Offer) all() []*source {
	if o == nil {
		return nil
	}
	return o.sources
}

func (o *Offer) offered() []tool {
	if o == nil {
		return nil
	}
	return o.tools[:min(maxTools, len(o.tools))]
}

// Tools are the tools on offer.
func (o *Offer) Tools() (all []tools.Tool) {
	for _, t := range o.offered() {
		all = append(all, t)
	}
	return all
}

// Hashes are those of the definitions on offer, by the names that the model calls.
func (o *Offer) Hashes() map[string]string {
	hashes := map[string]string{}
	for _, t := range o.offered() {
		hashes[t.name] = t.hash
	}
	return hashes
}

// RequiresApproval reports whether the entry of its server names the tool in requireApproval. It may be one that is not
// on offer.
func (o *Offer) RequiresApproval(name string) bool {
	return o != nil && slices.ContainsFunc(o.tools, func(t tool) bool {
		return t.name == name && toolpolicy.Matches(t.from.server.RequireApproval, t.own)
	})
}

// Unavailable are the servers that cannot be used.
func (o *Offer) Unavailable() (all []v1beta1.MCPServerUnavailable) {
	for _, f := range o.all() {
		if f.failure != nil {
			all = append(all, v1beta1.MCPServerUnavailable{Name: f.server.Name, Reason: f.failure.reason,
				Message: f.failure.words})
		}
	}
	return all
}

// Warning is about tools that the model is not offered.
type Warning struct{ Server, Words string }

// Warnings are about the servers that cannot be used, and those of which some tools are not offered.
func (o *Offer) Warnings() (all []Warning) {
	for _, f := range o.all() {
		if f.failure != nil {
			all = append(all, Warning{f.server.Name, f.failure.words})
			continue
		}
		for _, words := range []string{f.listed.note(), o.excess(f)} {
			if words != "" {
				all = append(all, Warning{f.server.Name, words})
			}
		}
	}
	return all
}

// excess describes the tools of the server beyond the limit of all servers; empty if there are none.
func (o *Offer) excess(f *source) string {
	omitted := slices.DeleteFunc(slices.Clone(o.tools[len(o.offered()):]), func(t tool) bool { return t.from != f })
	if len(omitted) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of its tools, %.60q first, are too many: a model is offered %d of all servers, of the first "+
		"entries first; see tools.allow", len(omitted), printable.Line(omitted[0].own), maxTools)
}

// Absent explains why there is no tool of that name, if its server cannot be used.
func (o *Offer) Absent(name string) error {
	for _, f := range o.all() {
		if f.failure != nil && f.server.Name == ServerOf(name) {
			return fmt.Errorf("tool %q cannot be called now, because MCP server %s cannot be used: %s", name, f.server.Name,
				f.failure.words)
		}
	}
	return nil
}

// Close ends the sessions that calls have opened.
func (o *Offer) Close() {
	for _, f := range o.all() {
		f.mu.Lock()
		if f.opened != nil {
			f.opened.close()
			f.opened = nil
		}
		f.mu.Unlock()
	}
}

// session returns the session that the calls of the step share. The error is a *failure, or that of ctx.
func (f *source) session(ctx context.Context) (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened != nil {
		return f.opened, nil
	}
	if f.unopened != nil {
		return nil, f.unopened
	}
	ctx, cancel := context.WithTimeout(ctx, f.server.ConnectTimeout())
	defer cancel()
	opened, err := f.servers.connect(ctx, f.endpoint, f.servers.recall(f.endpoint).client)
	if err != nil {
		f.servers.forget(f.endpoint)
		f.unopened, _ = errors.AsType[*failure](err)
		return nil, err
	}
	inHeaders := func(d definition) bool { return d.inHeaders }
	if opened.isStateless() && slices.ContainsFunc(f.listed.definitions, inHeaders) {
		if _, _, err := opened.tools(ctx); err != nil { // The call reports the error.
			f.servers.forget(f.endpoint)
		}
	}
	f.opened = opened
	return opened, nil
}

// Pinned are the hashes of the definitions that the messages pin, by the names of the tools. The latest pin counts.
func Pinned(messages []v1beta1.ChatMessage) map[string]string {
	pinned := map[string]string{}
	for i := range messages {
		g := messages[i].Spec.Generation
		if g == nil || g.MCP == nil {
			continue
		}
		for _, tool := range g.MCP.Pinned {
			pinned[tool.Name] = tool.Hash
		}
	}
	return pinned
}

// OnOffer reports whether the model was offered a tool when it made the newest reply. It is not known whether a call of
// another tool requires approval.
func OnOffer(messages []v1beta1.ChatMessage) func(name string) bool {
	pinned := Pinned(messages)
	var without []v1beta1.MCPServerUnavailable
	for i := range slices.Backward(messages) {
		if messages[i].Spec.Role != v1beta1.RoleAssistant {
			continue
		}
		if g := messages[i].Spec.Generation; g != nil && g.MCP != nil {
			without = g.MCP.Unavailable
		}
		break
	}
	return func(name string) bool {
		return pinned[name] != "" && !slices.ContainsFunc(without, func(s v1beta1.MCPServerUnavailable) bool {
			return s.Name == ServerOf(name)
		})
	}
}

// Unpinned are the offered definitions without a pin.
func Unpinned(offered, pinned map[string]string) []v1beta1.MCPTool {
	unpinned := maps.Clone(offered)
	maps.DeleteFunc(unpinned, func(name, _ string) bool { return pinned[name] != "" })
	return Sorted(unpinned)
}

// Sorted are definitions sorted by name, at most the limit of a message.
func Sorted(hashes map[string]string) []v1beta1.MCPTool {
	all := make([]v1beta1.MCPTool, 0, len(hashes))
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		if len(all) < v1beta1.MaxMCPServers*v1beta1.MaxMCPServerTools {
			all = append(all, v1beta1.MCPTool{Name: name, Hash: hashes[name]})
		}
	}
	return all
}

// Approved are the changed definitions that the message pins because a person has approved calls of the reply.
func Approved(reply *v1beta1.ChatMessage, approved []v1beta1.ToolCall) []v1beta1.MCPTool {
	if reply == nil || reply.Spec.Generation == nil || reply.Spec.Generation.MCP == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(reply.Spec.Generation.MCP.Changed), func(tool v1beta1.MCPTool) bool {
		return !slices.ContainsFunc(approved, func(call v1beta1.ToolCall) bool {
			return call.Name == tool.Name && call.ApprovalCause == v1beta1.ApprovalToolChanged
		})
	})
}
