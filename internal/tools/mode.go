// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/toolpolicy"
)

// Use is whether a chat with a mode may call a tool.
type Use int

const (
	// Forbidden means that it may not.
	Forbidden Use = iota
	// WithApproval means that a person approves each call.
	WithApproval
	// Free means that it may.
	Free
)

// Modal is a Tool that chats with a mode may call. Any other one is forbidden to them.
type Modal interface {
	Tool
	// In is whether a chat with the mode may call it.
	In(mode v1alpha1.ChatMode) Use
}

// UseIn is whether a chat with the mode may call the tool; empty: it has none.
func UseIn(mode v1alpha1.ChatMode, tool Tool) Use {
	if mode == "" {
		return Free
	}
	if modal, ok := tool.(Modal); ok {
		return modal.In(mode)
	}
	return Forbidden
}

// UseIn is whether a chat with the mode may call the tool of that name.
func (r *Registry) UseIn(mode v1alpha1.ChatMode, name string) Use { return UseIn(mode, r.tools[name]) }

// looking are the tools of providers that change nothing.
var looking = []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch}

// InMode is the chat without the tools that its mode forbids: a client's, those of providers that may change something,
// and those of the registry that are not Modal.
func (r *Registry) InMode(chat *v1alpha1.Chat) *v1alpha1.Chat {
	mode := chat.ModeInForce()
	if mode == "" {
		return chat
	}
	var bounds v1alpha1.ToolPolicy
	for name, tool := range r.tools {
		if UseIn(mode, tool) == Forbidden {
			bounds.Deny = append(bounds.Deny, v1alpha1.ToolPattern(name))
		}
	}
	allowed := v1alpha1.ChatTools{}
	if chat.Spec.Tools != nil {
		allowed = *chat.Spec.Tools
	}
	for i := range allowed.Client {
		bounds.Deny = append(bounds.Deny, v1alpha1.ToolPattern(allowed.Client[i].Name))
	}
	slices.Sort(bounds.Deny)
	allowed.ToolPolicy = toolpolicy.Within(allowed.ToolPolicy, bounds)
	allowed.Provider = slices.DeleteFunc(slices.Clone(allowed.Provider),
		func(own v1alpha1.ProviderTool) bool { return !slices.Contains(looking, own) })
	within := *chat
	within.Spec.Tools = &allowed
	return &within
}

// Proposing is a Tool whose calls people approve before they succeed, whatever the policy says: that is what they are
// for. Those of a chat in mode Plan end it for the turn.
type Proposing interface {
	Tool
	// Proposing marks the tool.
	Proposing()
}

// Proposes reports whether the tool of that name is Proposing.
func (r *Registry) Proposes(name string) bool {
	_, ok := r.tools[name].(Proposing)
	return ok
}

// Approved reports whether a plan was approved, according to the results of a batch.
func (r *Registry) Approved(results []v1alpha1.ToolResult) bool {
	return slices.ContainsFunc(results, func(result v1alpha1.ToolResult) bool {
		return r.Proposes(result.Name) && !result.IsError
	})
}
