// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// Housed is a Tool that works in the workspace of the chat's family. Its calls are run once that is ready.
type Housed interface {
	Tool
	// NeedsWorkspace marks the tool.
	NeedsWorkspace()
}

// NeedWorkspace reports whether one of the calls, if the chat allows it, needs the workspace.
func (r *Registry) NeedWorkspace(spec *v1alpha1.ChatTools, calls []v1alpha1.ToolCall) bool {
	return slices.ContainsFunc(calls, func(call v1alpha1.ToolCall) bool {
		_, housed := r.tools[call.Name].(Housed)
		return housed && allows(spec, call.Name)
	})
}
