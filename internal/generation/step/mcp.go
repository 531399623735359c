// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
)

// served is what the MCP servers of the chat offer to the step, and what the history pins of their tools.
type served struct {
	// asked brings the offer that was asked for beside the reading of the history; nil if none was.
	asked chan *mcp.Offer
	// offer is nil for a step that has none.
	offer *mcp.Offer
	// onOffer tells whether the reply that made the calls was offered a tool; nil for a step that asks a model.
	onOffer func(name string) bool
	// pinned are the hashes that the history holds.
	pinned map[string]string
	// account is what the step's message says of all that.
	account v1alpha1.MCPAccount
}

// Prepare begins to ask the MCP servers of the chat what they offer: beside the reading of the history, which takes its
// time, too. Only the servers of calls that are to be run are asked by a step that runs them, once those are known.
func (p *Performer) Prepare(ctx context.Context) {
	if p.steps.options.MCP == nil || len(p.chat.Spec.MCPServers) == 0 || p.action() == v1alpha1.ActionExecuteTools {
		return
	}
	asked := make(chan *mcp.Offer, 1)
	p.served.asked = asked
	go func() { asked <- p.offer(ctx, p.chat.Spec.MCPServers) }()
}

func (p *Performer) offer(ctx context.Context, servers []v1alpha1.MCPServer) *mcp.Offer {
	places := mcp.Places{Told: p.chat.Status.Internal.MCPServers}
	switch find, refused := p.steps.options.Workspace, p.task.CommandsRefused; {
	case refused != "":
		places.Workspace = func(context.Context) (*client.Client, error) { return nil, errors.New(refused) }
	case find != nil:
		places.Workspace = func(ctx context.Context) (*client.Client, error) { return find(ctx, p.chat) }
	}
	return p.steps.options.MCP.Offer(ctx, servers, places)
}

// meetServers waits for what the servers offer to a step that asks a model.
func (p *Performer) meetServers(ctx context.Context, messages []v1alpha1.ChatMessage) {
	p.served.pinned = mcp.Pinned(messages)
	if p.served.asked == nil {
		p.Prepare(ctx)
	}
	if p.served.asked != nil {
		p.served.offer = <-p.served.asked
	}
}

// meetServersOf asks the servers of calls; all servers if there is no tool for one of the calls, since its result names
// the tools on offer.
func (p *Performer) meetServersOf(ctx context.Context, messages []v1alpha1.ChatMessage, calls []v1alpha1.ToolCall) {
	all := p.chat.Spec.MCPServers
	if p.steps.options.MCP == nil || len(all) == 0 {
		return
	}
	p.served.onOffer = mcp.OnOffer(messages)
	var called []v1alpha1.MCPServer
	for _, server := range all {
		if slices.ContainsFunc(calls, func(c v1alpha1.ToolCall) bool { return mcp.ServerOf(c.Name) == server.Name }) {
			called = append(called, server)
		}
	}
	if len(called) > 0 {
		p.served.offer = p.offer(ctx, called)
	}
	offered := p.registry().Offered(p.chat)
	unknown := func(c v1alpha1.ToolCall) bool {
		return !slices.ContainsFunc(offered, func(d tools.Definition) bool { return d.Name == c.Name })
	}
	if len(called) < len(all) && slices.ContainsFunc(calls, unknown) {
		p.served.offer = p.offer(ctx, all)
	}
}

// registry are the tools of the step: the built-in ones, and those of MCP servers. A client's own tool comes before one
// of the same name.
func (p *Performer) registry() *tools.Registry {
	if p.served.offer == nil {
		return p.steps.options.Tools
	}
	late := map[string]bool{}
	more := slices.DeleteFunc(p.served.offer.Tools(), func(t tools.Tool) bool {
		d := t.Definition()
		late[d.Name] = p.served.onOffer != nil && !p.served.onOffer(d.Name)
		return late[d.Name] || d.In(p.chat.ModeInForce()) == tools.Forbidden ||
			tools.RequiresAction(p.chat.Spec.Tools, d.Name) == v1alpha1.RequiresClient
	})
	return p.steps.options.Tools.Plus(more, func(name string) error {
		if late[name] {
			return fmt.Errorf("tool %q was not on offer when it was called, so it is not known whether the call "+
				"requires approval: call it again", name)
		}
		return p.served.offer.Absent(name)
	})
}

// serverWarnings are about what the model is asked without.
func (p *Performer) serverWarnings() (warnings []fantasy.CallWarning) {
	for _, w := range p.served.offer.Warnings() {
		warnings = append(warnings, fantasy.CallWarning{
			Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: "mcpServers " + w.Server, Details: w.Words,
		})
	}
	return warnings
}

// changed reports whether the tool's server says something else of it than what is pinned, and notes that.
func (p *Performer) changed(name string) bool {
	hash, pinned := p.served.offer.Hashes()[name], p.served.pinned[name]
	if hash == "" || pinned == "" || hash == pinned {
		return false
	}
	changed := v1alpha1.MCPTool{Name: name, Hash: hash}
	if !slices.Contains(p.served.account.Changed, changed) {
		p.served.account.Changed = append(p.served.account.Changed, changed)
	}
	return true
}

// accountServers says in the step's message what there is to say of the servers; nil: nothing.
func (p *Performer) accountServers(kind v1alpha1.GenerationOutcome) *v1alpha1.MCPAccount {
	account := p.served.account
	switch {
	case kind != v1alpha1.OutcomeCompleted && kind != v1alpha1.OutcomeInterrupted:
		return nil
	case p.action() == v1alpha1.ActionGenerateAssistant:
		account.Unavailable = p.served.offer.Unavailable()
		account.Pinned = mcp.Unpinned(p.served.offer.Hashes(), p.served.pinned)
	case p.action() == v1alpha1.ActionCompact: // What it stands for is not read again.
		account.Pinned = mcp.Sorted(p.served.pinned)
	}
	if len(account.Unavailable)+len(account.Pinned)+len(account.Changed) == 0 {
		return nil
	}
	return &account
}

// pinApproved pins the definitions of the changed tools of which calls are run: a person has approved those.
func (p *Performer) pinApproved(messages []v1alpha1.ChatMessage, run []v1alpha1.ToolCall) {
	for i := range slices.Backward(messages) {
		if messages[i].Spec.Role == v1alpha1.RoleAssistant {
			p.served.account.Pinned = mcp.Approved(&messages[i], run)
			return
		}
	}
}
