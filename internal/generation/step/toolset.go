// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
)

// toolset are the tools of a step: the built-in ones, and those of the chat's MCP servers.
type toolset struct {
	options *Options
	chat    *v1beta1.Chat
	// commandsRefused is why MCP servers may not run in the workspace of the chat; empty if they may.
	commandsRefused string
	// pending brings the offer that prepare has asked for; nil if it has not.
	pending chan *mcp.Offer
	// offer is nil for a step without servers.
	offer *mcp.Offer
	// wasOffered reports whether the reply with the calls was offered a tool; nil for a step that asks a model.
	wasOffered func(name string) bool
	// pinned are the hashes of the servers' tools in the history.
	pinned  map[string]string
	account v1beta1.MCPAccount
}

// prepare begins to ask the servers for a step that asks a model. A step that runs calls asks only the servers of the
// calls.
func (t *toolset) prepare(ctx context.Context) {
	servers := t.chat.Spec.MCPServers
	if t.options.MCP == nil || len(servers) == 0 || t.chat.Status.Generation.Action == v1beta1.ActionExecuteTools {
		return
	}
	t.pending = make(chan *mcp.Offer, 1)
	go func() { t.pending <- t.ask(ctx, servers) }()
}

func (t *toolset) ask(ctx context.Context, servers []v1beta1.MCPServer) *mcp.Offer {
	places := mcp.Places{Told: t.chat.Status.Internal.MCPServers}
	switch find, refused := t.options.Workspace, t.commandsRefused; {
	case refused != "":
		places.Workspace = func(context.Context) (*client.Client, error) { return nil, errors.New(refused) }
	case find != nil:
		places.Workspace = func(ctx context.Context) (*client.Client, error) { return find(ctx, t.chat) }
	}
	return t.options.MCP.Offer(ctx, servers, places)
}

// awaitServers waits for the offer of the servers to a step that asks a model.
func (t *toolset) awaitServers(ctx context.Context, messages []v1beta1.ChatMessage) {
	t.pinned = mcp.Pinned(messages)
	if t.pending == nil {
		t.prepare(ctx)
	}
	if t.pending != nil {
		t.offer = <-t.pending
	}
}

// askServersOf asks the servers of calls; all servers if a call is of an unknown tool, whose result names the tools on
// offer.
func (t *toolset) askServersOf(ctx context.Context, messages []v1beta1.ChatMessage, calls []v1beta1.ToolCall) {
	all := t.chat.Spec.MCPServers
	if t.options.MCP == nil || len(all) == 0 {
		return
	}
	t.wasOffered = mcp.OnOffer(messages)
	var called []v1beta1.MCPServer
	for _, server := range all {
		if slices.ContainsFunc(calls, func(c v1beta1.ToolCall) bool { return mcp.ServerOf(c.Name) == server.Name }) {
			called = append(called, server)
		}
	}
	if len(called) > 0 {
		t.offer = t.ask(ctx, called)
	}
	offered := t.registry().Offered(t.chat)
	unknown := func(c v1beta1.ToolCall) bool {
		return !slices.ContainsFunc(offered, func(d tools.Definition) bool { return d.Name == c.Name })
	}
	if len(called) < len(all) && slices.ContainsFunc(calls, unknown) {
		t.offer = t.ask(ctx, all)
	}
}

// registry are the tools of the step. A client's own tool hides a server's tool of the same name.
func (t *toolset) registry() *tools.Registry {
	if t.offer == nil {
		return t.options.Tools
	}
	late := map[string]bool{}
	more := slices.DeleteFunc(t.offer.Tools(), func(tool tools.Tool) bool {
		d := tool.Definition()
		late[d.Name] = t.wasOffered != nil && !t.wasOffered(d.Name)
		return late[d.Name] || d.In(t.chat.EffectiveMode()) == tools.Forbidden ||
			tools.RequiresAction(t.chat.Spec.Tools, d.Name) == v1beta1.RequiresClient
	})
	return t.options.Tools.Plus(more, func(name string) error {
		if late[name] {
			return fmt.Errorf("tool %q was not on offer when it was called, so it is not known whether the call "+
				"requires approval: call it again", name)
		}
		return t.offer.Absent(name)
	})
}

// serverWarnings are about servers that could not be used.
func (t *toolset) serverWarnings() (warnings []fantasy.CallWarning) {
	for _, w := range t.offer.Warnings() {
		warnings = append(warnings, fantasy.CallWarning{
			Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: "mcpServers " + w.Server, Details: w.Words,
		})
	}
	return warnings
}

// hasChanged reports whether the tool's definition differs from the pinned one, and adds it to the account.
func (t *toolset) hasChanged(name string) bool {
	hash, pinned := t.offer.Hashes()[name], t.pinned[name]
	if hash == "" || pinned == "" || hash == pinned {
		return false
	}
	changed := v1beta1.MCPTool{Name: name, Hash: hash}
	if !slices.Contains(t.account.Changed, changed) {
		t.account.Changed = append(t.account.Changed, changed)
	}
	return true
}

// accountServers is the account of the servers; nil if it is empty.
func (t *toolset) accountServers(kind v1beta1.GenerationOutcome) *v1beta1.MCPAccount {
	account := t.account
	switch action := t.chat.Status.Generation.Action; {
	case kind != v1beta1.OutcomeCompleted && kind != v1beta1.OutcomeInterrupted:
		return nil
	case action == v1beta1.ActionGenerateAssistant:
		account.Unavailable = t.offer.Unavailable()
		account.Pinned = mcp.Unpinned(t.offer.Hashes(), t.pinned)
	case action == v1beta1.ActionCompact: // The messages that it replaces are not read again.
		account.Pinned = mcp.Sorted(t.pinned)
	}
	if len(account.Unavailable)+len(account.Pinned)+len(account.Changed) == 0 {
		return nil
	}
	return &account
}

// pinApproved pins the changed definitions of the called tools: a person has approved these calls.
func (t *toolset) pinApproved(messages []v1beta1.ChatMessage, run []v1beta1.ToolCall) {
	for i := range slices.Backward(messages) {
		if messages[i].Spec.Role == v1beta1.RoleAssistant {
			t.account.Pinned = mcp.Approved(&messages[i], run)
			return
		}
	}
}

// setRequired sets the action that the call requires, or why it is refused.
func (t *toolset) setRequired(call *v1beta1.ToolCall) {
	if call.Refusal != "" {
		return
	}
	call.RequiresAction, call.ApprovalCause = t.requiredAction(call.Name)
	switch {
	case !toolpolicy.Allows(t.chat.Spec.Tools, call.Name),
		t.registry().Traits(call.Name).In(t.chat.EffectiveMode()) == tools.Forbidden:
		call.Refusal = v1beta1.RefusalNotAllowed
	case call.RequiresAction == v1beta1.RequiresApproval && !approval.Fits(call.Input):
		call.RequiresAction, call.ApprovalCause, call.Refusal = "", "", v1beta1.RefusalInputTooLarge
	}
}

// requiredAction is the action that a call requires, and its cause if no setting demands it.
func (t *toolset) requiredAction(name string) (v1beta1.RequiredAction, v1beta1.ApprovalCause) {
	action := tools.RequiresAction(t.chat.Spec.Tools, name)
	if action == v1beta1.RequiresClient || !toolpolicy.Allows(t.chat.Spec.Tools, name) {
		return action, ""
	}
	traits := t.registry().Traits(name)
	switch use := traits.In(t.chat.EffectiveMode()); {
	case use == tools.Forbidden: // The call is refused.
		return "", ""
	case t.hasChanged(name):
		return v1beta1.RequiresApproval, v1beta1.ApprovalToolChanged
	case traits.ProposesPlan:
		return v1beta1.RequiresApproval, v1beta1.ApprovalPlanProposed
	case traits.OwnsApproval: // The tool asks people once it knows what the call would do.
		return "", ""
	case action == v1beta1.RequiresApproval || t.offer.RequiresApproval(name):
		return v1beta1.RequiresApproval, ""
	case use == tools.WithApproval:
		return v1beta1.RequiresApproval, v1beta1.ApprovalPlanMode
	}
	return "", ""
}

// withRequired sets the action that each call requires.
func (t *toolset) withRequired(s collect.Step) collect.Step {
	registry := t.registry()
	if registry.Conflict(pendingCalls(s)) != "" { // None will run.
		return s
	}
	for i := range s.Parts {
		if call := s.Parts[i].ToolCall; call != nil && !call.ProviderExecuted {
			t.setRequired(call)
			if call.RequiresAction != "" {
				s.CallsRequiringAction++
			}
		}
	}
	calls := pendingCalls(s)
	s.WaitingFor = registry.WaitingCalls(t.chat.Spec.Tools, calls)
	s.NeedsWorkspace = registry.NeedWorkspace(t.chat, calls)
	return s
}
