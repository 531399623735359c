// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tools runs the tools that models call. Every failure of a call becomes a result that the model can read and
// act on: an unknown tool, bad arguments, an error, a panic. A batch of calls always yields one result per call.
package tools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// Registry holds all tools.
type Registry struct {
	tools map[string]registeredTool
	// absent explains why there is no tool of that name; nil: see Plus.
	absent func(name string) error
}

type registeredTool struct {
	Tool
	Definition
	// added is true for tools that are not built in: see Plus.
	added bool
}

// NewRegistry returns a registry of the tools. It panics if two have one name, because that is a bug.
func NewRegistry(all ...Tool) *Registry {
	r := &Registry{tools: map[string]registeredTool{}}
	for _, tool := range all {
		if !r.add(tool, false) {
			panic("two tools are named " + tool.Definition().Name)
		}
	}
	return r
}

// add reports whether the name was free.
func (r *Registry) add(tool Tool, added bool) bool {
	d := tool.Definition()
	_, taken := r.tools[d.Name]
	if !taken {
		r.tools[d.Name] = registeredTool{tool, d, added}
	}
	return !taken
}

// With returns a registry that has the tool in place of the one of its name, if there is one.
func (r *Registry) With(tool Tool) *Registry {
	d := tool.Definition()
	if !r.Has(d.Name) {
		return r
	}
	with := &Registry{tools: maps.Clone(r.tools), absent: r.absent}
	with.tools[d.Name] = registeredTool{tool, d, false}
	return with
}

// Plus returns a registry that has these tools in addition, such as those of MCP servers, but none whose name is in
// use. absent explains why there is no tool of a name that might be one of theirs; it may be nil, and return nil.
func (r *Registry) Plus(more []Tool, absent func(name string) error) *Registry {
	plus := &Registry{tools: maps.Clone(r.tools), absent: absent}
	for _, tool := range more {
		plus.add(tool, true)
	}
	return plus
}

// Has reports whether there is a built-in tool of that name.
func (r *Registry) Has(name string) bool { return r.tools[name].Tool != nil && !r.tools[name].added }

// Traits are those of the tool of that name; none if there is no such tool.
func (r *Registry) Traits(name string) Traits { return r.tools[name].Traits }

// Suited are the tools that the chat allows and has turned on, and has a use for or names itself in spec.tools.allow,
// sorted by name.
func (r *Registry) Suited(chat *v1beta1.Chat) (suited []Definition) {
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		d := r.tools[name].Definition
		if d.isActive(chat, name) && (d.UsefulTo == nil || d.UsefulTo(chat) ||
			toolpolicy.Names(chat.Spec.Tools, name)) {
			suited = append(suited, d)
		}
	}
	return suited
}

// isActive reports whether the chat allows the tool of that name, and has turned it on.
func (t Traits) isActive(chat *v1beta1.Chat, name string) bool {
	return toolpolicy.Allows(chat.Spec.Tools, name) && (t.EnabledFor == nil || t.EnabledFor(chat))
}

// Offered are the tools in the model's prompt: the Suited ones, and those of the chat's client.
func (r *Registry) Offered(chat *v1beta1.Chat) []Definition {
	return append(r.Suited(chat), OfClient(chat.Spec.Tools)...)
}

// find is the tool of that name. The error tells the model that the chat has none.
func (r *Registry) find(chat *v1beta1.Chat, name string) (Tool, error) {
	tool, ok := r.tools[name]
	if !ok && r.absent != nil {
		if err := r.absent(name); err != nil {
			return nil, err
		}
	}
	problem := "is not active in this chat"
	switch {
	case !ok:
		problem = "does not exist"
	case tool.isActive(chat, name):
		return tool.Tool, nil
	}
	offered := "none"
	if all := r.Offered(chat); len(all) > 0 {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		offered = strings.Join(names, ", ")
	}
	return nil, fmt.Errorf("tool %q %s; the tools on offer are: %s", name, problem, offered)
}

// readOnlyProviderTools are the tools of providers that change nothing.
var readOnlyProviderTools = []v1beta1.ProviderTool{v1beta1.ProviderWebSearch}

// InMode is the chat without the tools that its mode forbids: a client's, those of providers that may change something,
// and those of the registry whose Traits forbid them.
func (r *Registry) InMode(chat *v1beta1.Chat) *v1beta1.Chat {
	mode := chat.EffectiveMode()
	if mode == "" {
		return chat
	}
	var bounds v1beta1.ToolPolicy
	for name := range r.tools {
		if r.Traits(name).In(mode) == Forbidden {
			bounds.Deny = append(bounds.Deny, v1beta1.ToolPattern(name))
		}
	}
	allowed := v1beta1.ChatTools{}
	if chat.Spec.Tools != nil {
		allowed = *chat.Spec.Tools
	}
	for i := range allowed.Client {
		bounds.Deny = append(bounds.Deny, v1beta1.ToolPattern(allowed.Client[i].Name))
	}
	slices.Sort(bounds.Deny)
	allowed.ToolPolicy = toolpolicy.Within(allowed.ToolPolicy, bounds)
	allowed.Provider = slices.DeleteFunc(slices.Clone(allowed.Provider),
		func(tool v1beta1.ProviderTool) bool { return !slices.Contains(readOnlyProviderTools, tool) })
	within := *chat
	within.Spec.Tools = &allowed
	return &within
}

// Unread is the error of a failed read from the API server, without its message.
func Unread(ctx context.Context, what string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s cannot be read at the moment; try again", what)
}

// AgentChanges returns the changes of sub-chats that follow from the results of a batch, and the results: those beyond
// the limit of changes become errors.
func (r *Registry) AgentChanges(batch *Batch, results []v1beta1.ToolResult) (
	changes []v1beta1.AgentChange, _ []v1beta1.ToolResult,
) {
	for i := range results {
		result, change := &results[i], r.Traits(results[i].Name).ChangeAgent
		called := slices.IndexFunc(batch.Calls, func(call v1beta1.ToolCall) bool { return call.ID == result.ID })
		switch {
		case change == nil || called < 0 || result.IsError:
		case len(changes) == v1beta1.MaxAgentChanges:
			result.IsError, result.Output = true, fmt.Sprintf("nothing was done: the calls of one reply may start %d agents, "+
				"or tell them something; make this call in your next reply", v1beta1.MaxAgentChanges)
		default:
			changes = append(changes, change(batch.call(batch.Calls[called])))
		}
	}
	return changes, results
}

// WorkspaceChange is the change of the workspace that follows from the results of a batch; nil: none.
func (r *Registry) WorkspaceChange(results []v1beta1.ToolResult) *v1beta1.WorkspaceChange {
	for _, result := range results {
		if change := r.Traits(result.Name).ChangeWorkspace; change != nil && !result.IsError {
			return change(result) // The tool is exclusive: there is no other result.
		}
	}
	return nil
}

// PlanApproved reports whether the results of a batch have an approved plan.
func (r *Registry) PlanApproved(results []v1beta1.ToolResult) bool {
	return slices.ContainsFunc(results, func(result v1beta1.ToolResult) bool {
		return r.Traits(result.Name).ProposesPlan && !result.IsError
	})
}

// WaitingCalls are the calls that wait for sub-chats, at most v1beta1.MaxWaitingCalls. Refused calls and those of
// tools that the chat does not allow wait for nothing.
func (r *Registry) WaitingCalls(spec *v1beta1.ChatTools, calls []v1beta1.ToolCall) (waiting []v1beta1.WaitingCall) {
	for _, call := range calls {
		waitsFor := r.Traits(call.Name).WaitsFor
		if waitsFor == nil || !canRun(spec, &call) || len(waiting) == v1beta1.MaxWaitingCalls {
			continue
		}
		if chat, seconds := waitsFor(call.Input); seconds > 0 {
			waiting = append(waiting, v1beta1.WaitingCall{ID: call.ID, Chat: chat, TimeoutSeconds: seconds,
				RequiresAction: call.RequiresAction})
		}
	}
	return waiting
}

// NeedWorkspace reports whether one of the calls needs the workspace.
func (r *Registry) NeedWorkspace(chat *v1beta1.Chat, calls []v1beta1.ToolCall) bool {
	return slices.ContainsFunc(calls, func(call v1beta1.ToolCall) bool {
		t := r.Traits(call.Name)
		return canRun(chat.Spec.Tools, &call) &&
			(t.NeedsWorkspace || t.MayNeedWorkspace != nil && t.MayNeedWorkspace(chat, call.Input))
	})
}

// canRun reports whether the chat allows the tool of a call, and the call is not refused.
func canRun(spec *v1beta1.ChatTools, call *v1beta1.ToolCall) bool {
	return call.Refusal == "" && toolpolicy.Allows(spec, call.Name)
}

// InWorkspace are the names of the tools that can work in a workspace, sorted.
func (r *Registry) InWorkspace() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		if t := r.Traits(name); t.NeedsWorkspace || t.MayNeedWorkspace != nil {
			names = append(names, name)
		}
	}
	return names
}
