// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"parley.dev/parley/api/v1alpha1"
)

// Deciding is a Tool whose results decide about the workspace of the chat. It changes nothing itself: the operator does
// what was decided, once, when it has the result. So a call whose result is lost has decided nothing.
type Deciding interface {
	Exclusive
	// Decision is what a result of the tool that is no error decides; nil: nothing.
	Decision(result v1alpha1.ToolResult) *v1alpha1.WorkspaceChange
}

// Decision is what the results of a batch decide; nil: nothing. Tools that decide are called alone.
func (r *Registry) Decision(results []v1alpha1.ToolResult) *v1alpha1.WorkspaceChange {
	for _, result := range results {
		if tool, ok := r.tools[result.Name].(Deciding); ok && !result.IsError {
			if change := tool.Decision(result); change != nil {
				return change
			}
		}
	}
	return nil
}
