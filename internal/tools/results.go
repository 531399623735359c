// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// AgentChanges are what the results of a batch decide about sub-chats, and the results: those that would decide more
// than one message can say become errors.
func (r *Registry) AgentChanges(batch *Batch, results []v1alpha1.ToolResult) (
	[]v1alpha1.AgentChange, []v1alpha1.ToolResult,
) {
	var changes []v1alpha1.AgentChange
	for i := range results {
		result, change := &results[i], r.Traits(results[i].Name).ChangeAgent
		called := slices.IndexFunc(batch.Calls, func(call v1alpha1.ToolCall) bool { return call.ID == result.ID })
		switch {
		case change == nil || called < 0 || result.IsError:
		case len(changes) == v1alpha1.MaxAgentChanges:
			result.IsError, result.Output = true, fmt.Sprintf("nothing was done: the calls of one reply may start %d agents, "+
				"or tell them something; make this call in your next reply", v1alpha1.MaxAgentChanges)
		default:
			changes = append(changes, change(batch.call(batch.Calls[called])))
		}
	}
	return changes, results
}

// WorkspaceChange is what the results of a batch decide about the workspace; nil: nothing. Tools that decide are called
// alone.
func (r *Registry) WorkspaceChange(results []v1alpha1.ToolResult) *v1alpha1.WorkspaceChange {
	for _, result := range results {
		if change := r.Traits(result.Name).ChangeWorkspace; change != nil && !result.IsError {
			if decided := change(result); decided != nil {
				return decided
			}
		}
	}
	return nil
}

// PlanApproved reports whether a plan was approved, according to the results of a batch.
func (r *Registry) PlanApproved(results []v1alpha1.ToolResult) bool {
	return slices.ContainsFunc(results, func(result v1alpha1.ToolResult) bool {
		return r.Traits(result.Name).ProposesPlan && !result.IsError
	})
}
