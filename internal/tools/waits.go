// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"maps"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// WaitingCalls are those of the calls that wait for sub-chats, that the chat allows and that are not refused, at most
// v1alpha1.MaxWaitingCalls.
func (r *Registry) WaitingCalls(spec *v1alpha1.ChatTools, calls []v1alpha1.ToolCall) (waiting []v1alpha1.WaitingCall) {
	for _, call := range calls {
		waitsFor := r.Traits(call.Name).WaitsFor
		if waitsFor == nil || call.Refusal != "" || !toolpolicy.Allows(spec, call.Name) ||
			len(waiting) == v1alpha1.MaxWaitingCalls {
			continue
		}
		if chat, seconds := waitsFor(call.Input); seconds > 0 {
			waiting = append(waiting, v1alpha1.WaitingCall{ID: call.ID, Chat: chat, TimeoutSeconds: seconds,
				RequiresAction: call.RequiresAction})
		}
	}
	return waiting
}

// NeedWorkspace reports whether one of the calls needs the workspace, if the chat allows it and it is not refused.
func (r *Registry) NeedWorkspace(chat *v1alpha1.Chat, calls []v1alpha1.ToolCall) bool {
	return slices.ContainsFunc(calls, func(call v1alpha1.ToolCall) bool {
		t := r.Traits(call.Name)
		return call.Refusal == "" && toolpolicy.Allows(chat.Spec.Tools, call.Name) &&
			(t.NeedsWorkspace || t.MayNeedWorkspace != nil && t.MayNeedWorkspace(chat, call.Input))
	})
}

// InWorkspace are the names of the tools that can work in a workspace, in their order.
func (r *Registry) InWorkspace() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		if t := r.Traits(name); t.NeedsWorkspace || t.MayNeedWorkspace != nil {
			names = append(names, name)
		}
	}
	return names
}
