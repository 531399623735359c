// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// readOnlyProviderTools are the tools of providers that change nothing.
var readOnlyProviderTools = []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch}

// InMode is the chat without the tools that its mode forbids: a client's, those of providers that may change something,
// and those of the registry whose Traits do.
func (r *Registry) InMode(chat *v1alpha1.Chat) *v1alpha1.Chat {
	mode := chat.ModeInForce()
	if mode == "" {
		return chat
	}
	var bounds v1alpha1.ToolPolicy
	for name := range r.tools {
		if r.Traits(name).In(mode) == Forbidden {
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
		func(own v1alpha1.ProviderTool) bool { return !slices.Contains(readOnlyProviderTools, own) })
	within := *chat
	within.Spec.Tools = &allowed
	return &within
}
