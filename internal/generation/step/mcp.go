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

// toolset are the tools of a step: the built-in ones, and those that the MCP servers of the chat offer.
type toolset struct {
	options *Options
	chat    *v1alpha1.Chat
	// commandsRefused is why MCP servers may not run in the workspace of the chat; empty if they may.
	commandsRefused string
	// asked brings the offer that was asked for beside the reading of the history; nil if none was.
	asked chan *mcp.Offer
	// offer is nil for a step that has none.
	offer *mcp.Offer
	// onOffer tells whether the reply that made the calls was offered a tool; nil for a step that asks a model.
	onOffer func(name string) bool
	// pinned are the hashes that the history holds of the servers' tools.
	pinned map[string]string
	// account is what the step's message says of all that.
	account v1alpha1.MCPAccount
}

// prepare begins to ask the servers of a step that asks a model. A step that runs calls asks only the servers of these,
// once they are known.
func (t *toolset) prepare(ctx context.Context) {
	servers := t.chat.Spec.MCPServers
	if t.options.MCP == nil || len(servers) == 0 || t.chat.Status.Generation.Action == v1alpha1.ActionExecuteTools {
		return
	}
	asked := make(chan *mcp.Offer, 1)
	t.asked = asked
	go func() { asked <- t.ask(ctx, servers) }()
}

func (t *toolset) ask(ctx context.Context, servers []v1alpha1.MCPServer) *mcp.Offer {
	places := mcp.Places{Told: t.chat.Status.Internal.MCPServers}
	switch find, refused := t.options.Workspace, t.commandsRefused; {
	case refused != "":
		places.Workspace = func(context.Context) (*client.Client, error) { return nil, errors.New(refused) }
	case find != nil:
		places.Workspace = func(ctx context.Context) (*client.Client, error) { return find(ctx, t.chat) }
	}
	return t.options.MCP.Offer(ctx, servers, places)
}

// awaitServers waits for what the servers offer to a step that asks a model.
func (t *toolset) awaitServers(ctx context.Context, messages []v1alpha1.ChatMessage) {
	t.pinned = mcp.Pinned(messages)
	if t.asked == nil {
		t.prepare(ctx)
	}
	if t.asked != nil {
		t.offer = <-t.asked
	}
}

// askServersOf asks the servers of calls; all servers if there is no tool for one of the calls, since its result names
// the tools on offer.
func (t *toolset) askServersOf(ctx context.Context, messages []v1alpha1.ChatMessage, calls []v1alpha1.ToolCall) {
	all := t.chat.Spec.MCPServers
	if t.options.MCP == nil || len(all) == 0 {
		return
	}
	t.onOffer = mcp.OnOffer(messages)
	var called []v1alpha1.MCPServer
	for _, server := range all {
		if slices.ContainsFunc(calls, func(c v1alpha1.ToolCall) bool { return mcp.ServerOf(c.Name) == server.Name }) {
			called = append(called, server)
		}
	}
	if len(called) > 0 {
		t.offer = t.ask(ctx, called)
	}
	offered := t.registry().Offered(t.chat)
	unknown := func(c v1alpha1.ToolCall) bool {
		return !slices.ContainsFunc(offered, func(d tools.Definition) bool { return d.Name == c.Name })
	}
	if len(called) < len(all) && slices.ContainsFunc(calls, unknown) {
		t.offer = t.ask(ctx, all)
	}
}

// registry are the tools of the step: the built-in ones, and those of MCP servers. A client's own tool comes before one
// of the same name.
func (t *toolset) registry() *tools.Registry {
	if t.offer == nil {
		return t.options.Tools
	}
	late := map[string]bool{}
	more := slices.DeleteFunc(t.offer.Tools(), func(tool tools.Tool) bool {
		d := tool.Definition()
		late[d.Name] = t.onOffer != nil && !t.onOffer(d.Name)
		return late[d.Name] || d.In(t.chat.ModeInForce()) == tools.Forbidden ||
			tools.RequiresAction(t.chat.Spec.Tools, d.Name) == v1alpha1.RequiresClient
	})
	return t.options.Tools.Plus(more, func(name string) error {
		if late[name] {
			return fmt.Errorf("tool %q was not on offer when it was called, so it is not known whether the call "+
				"requires approval: call it again", name)
		}
		return t.offer.Absent(name)
	})
}

// serverWarnings are about what the model is asked without.
func (t *toolset) serverWarnings() (warnings []fantasy.CallWarning) {
	for _, w := range t.offer.Warnings() {
		warnings = append(warnings, fantasy.CallWarning{
			Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: "mcpServers " + w.Server, Details: w.Words,
		})
	}
	return warnings
}

// changed reports whether the tool's server says something else of it than what is pinned, and notes that.
func (t *toolset) changed(name string) bool {
	hash, pinned := t.offer.Hashes()[name], t.pinned[name]
	if hash == "" || pinned == "" || hash == pinned {
		return false
	}
	changed := v1alpha1.MCPTool{Name: name, Hash: hash}
	if !slices.Contains(t.account.Changed, changed) {
		t.account.Changed = append(t.account.Changed, changed)
	}
	return true
}

// accountServers says in the step's message what there is to say of the servers; nil: nothing.
func (t *toolset) accountServers(kind v1alpha1.GenerationOutcome) *v1alpha1.MCPAccount {
	account := t.account
	switch action := t.chat.Status.Generation.Action; {
	case kind != v1alpha1.OutcomeCompleted && kind != v1alpha1.OutcomeInterrupted:
		return nil
	case action == v1alpha1.ActionGenerateAssistant:
		account.Unavailable = t.offer.Unavailable()
		account.Pinned = mcp.Unpinned(t.offer.Hashes(), t.pinned)
	case action == v1alpha1.ActionCompact: // What it stands for is not read again.
		account.Pinned = mcp.Sorted(t.pinned)
	}
	if len(account.Unavailable)+len(account.Pinned)+len(account.Changed) == 0 {
		return nil
	}
	return &account
}

// pinApproved pins the definitions of the changed tools of which calls are run: a person has approved those.
func (t *toolset) pinApproved(messages []v1alpha1.ChatMessage, run []v1alpha1.ToolCall) {
	for i := range slices.Backward(messages) {
		if messages[i].Spec.Role == v1alpha1.RoleAssistant {
			t.account.Pinned = mcp.Approved(&messages[i], run)
			return
		}
	}
}
