// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"maps"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/toolpolicy"
)

// Housed is a Tool that works in the workspace of the chat's family. Its calls are run once that is ready.
type Housed interface {
	Tool
	// NeedsWorkspace marks the tool.
	NeedsWorkspace()
}

// PartlyHoused is a Tool of which some calls work in the workspace of the chat's family, and others need none.
type PartlyHoused interface {
	Tool
	// NeedsWorkspaceFor reports whether a call of the chat with these arguments works there. It depends on nothing else,
	// so that each step comes to the same answer.
	NeedsWorkspaceFor(chat *v1alpha1.Chat, input string) bool
}

// NeedWorkspace reports whether one of the calls needs the workspace, if the chat allows it and it is not refused.
func (r *Registry) NeedWorkspace(chat *v1alpha1.Chat, calls []v1alpha1.ToolCall) bool {
	return slices.ContainsFunc(calls, func(call v1alpha1.ToolCall) bool {
		if call.Refusal != "" || !toolpolicy.Allows(chat.Spec.Tools, call.Name) {
			return false
		}
		switch tool := r.tools[call.Name].(type) {
		case Housed:
			return true
		case PartlyHoused:
			return tool.NeedsWorkspaceFor(chat, call.Input)
		}
		return false
	})
}

// InWorkspace are the names of the tools that can work in a workspace, in their order.
func (r *Registry) InWorkspace() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		switch r.tools[name].(type) {
		case Housed, PartlyHoused:
			names = append(names, name)
		}
	}
	return names
}
