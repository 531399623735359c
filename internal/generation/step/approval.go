// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/tools"
)

// judge says whose action the call requires, or why it is not run.
func (t *toolset) judge(call *v1alpha1.ToolCall) {
	if call.Refusal != "" {
		return
	}
	call.RequiresAction, call.ApprovalCause = t.requiredAction(call.Name)
	switch {
	case !toolpolicy.Allows(t.chat.Spec.Tools, call.Name),
		t.registry().Traits(call.Name).In(t.chat.ModeInForce()) == tools.Forbidden:
		call.Refusal = v1alpha1.RefusalNotAllowed
	case call.RequiresAction == v1alpha1.RequiresApproval && !approval.Fits(call.Input):
		call.RequiresAction, call.ApprovalCause, call.Refusal = "", "", v1alpha1.RefusalInputTooLarge
	}
}

// requiredAction is whose action the call requires, and why if nobody asked for that.
func (t *toolset) requiredAction(name string) (v1alpha1.RequiredAction, v1alpha1.ApprovalCause) {
	action := tools.RequiresAction(t.chat.Spec.Tools, name)
	if action == v1alpha1.RequiresClient || !toolpolicy.Allows(t.chat.Spec.Tools, name) {
		return action, ""
	}
	traits := t.registry().Traits(name)
	switch use := traits.In(t.chat.ModeInForce()); {
	case use == tools.Forbidden: // Its result says so.
		return "", ""
	case t.changed(name):
		return v1alpha1.RequiresApproval, v1alpha1.ApprovalToolChanged
	case traits.ProposesPlan:
		return v1alpha1.RequiresApproval, v1alpha1.ApprovalPlanProposed
	case traits.OwnsApproval: // People are asked once it is known what the call would do.
		return "", ""
	case action == v1alpha1.RequiresApproval || t.offer.RequiresApproval(name):
		return v1alpha1.RequiresApproval, ""
	case use == tools.WithApproval:
		return v1alpha1.RequiresApproval, v1alpha1.ApprovalPlanMode
	}
	return "", ""
}

// withRequired says of each call whose action it requires besides Parley's.
func (t *toolset) withRequired(s collect.Step) collect.Step {
	registry := t.registry()
	if registry.Conflict(pendingCalls(s)) != "" { // None will be run, so that there is nothing to wait for.
		return s
	}
	for i := range s.Parts {
		if call := s.Parts[i].ToolCall; call != nil && !call.ProviderExecuted {
			t.judge(call)
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
