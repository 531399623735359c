// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"maps"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// AgentChanges returns the changes of sub-chats that follow from the results of a batch, and the results: those beyond
// the limit of changes become errors.
func (r *Registry) AgentChanges(batch *Batch, results []v1alpha1.ToolResult) (
	changes []v1alpha1.AgentChange, _ []v1alpha1.ToolResult,
) {
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

// WorkspaceChange is the change of the workspace that follows from the results of a batch; nil: none.
func (r *Registry) WorkspaceChange(results []v1alpha1.ToolResult) *v1alpha1.WorkspaceChange {
	for _, result := range results {
		if change := r.Traits(result.Name).ChangeWorkspace; change != nil && !result.IsError {
			return change(result) // The tool is exclusive: there is no other result.
		}
	}
	return nil
}

// PlanApproved reports whether the results of a batch have an approved plan.
func (r *Registry) PlanApproved(results []v1alpha1.ToolResult) bool {
	return slices.ContainsFunc(results, func(result v1alpha1.ToolResult) bool {
		return r.Traits(result.Name).ProposesPlan && !result.IsError
	})
}

// WaitingCalls are the calls that wait for sub-chats, at most v1alpha1.MaxWaitingCalls. Refused calls and those of
// tools that the chat does not allow wait for nothing.
func (r *Registry) WaitingCalls(spec *v1alpha1.ChatTools, calls []v1alpha1.ToolCall) (waiting []v1alpha1.WaitingCall) {
	for _, call := range calls {
		waitsFor := r.Traits(call.Name).WaitsFor
		if waitsFor == nil || !canRun(spec, &call) || len(waiting) == v1alpha1.MaxWaitingCalls {
			continue
		}
		if chat, seconds := waitsFor(call.Input); seconds > 0 {
			waiting = append(waiting, v1alpha1.WaitingCall{ID: call.ID, Chat: chat, TimeoutSeconds: seconds,
				RequiresAction: call.RequiresAction})
		}
	}
	return waiting
}

// NeedWorkspace reports whether one of the calls needs the workspace.
func (r *Registry) NeedWorkspace(chat *v1alpha1.Chat, calls []v1alpha1.ToolCall) bool {
	return slices.ContainsFunc(calls, func(call v1alpha1.ToolCall) bool {
		t := r.Traits(call.Name)
		return canRun(chat.Spec.Tools, &call) &&
			(t.NeedsWorkspace || t.MayNeedWorkspace != nil && t.MayNeedWorkspace(chat, call.Input))
	})
}

// canRun reports whether the chat allows the tool of a call, and the call is not refused.
func canRun(spec *v1alpha1.ChatTools, call *v1alpha1.ToolCall) bool {
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
