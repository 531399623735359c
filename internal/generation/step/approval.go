// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/tools"
)

// judge says whose action the call requires, or why it is not run.
func (p *Performer) judge(call *v1alpha1.ToolCall) {
	if call.Refusal != "" {
		return
	}
	call.RequiresAction, call.ApprovalCause = p.requiredAction(call.Name)
	switch {
	case p.notAllowed(call.Name):
		call.Refusal = v1alpha1.RefusalNotAllowed
	case call.RequiresAction == v1alpha1.RequiresApproval && !approval.Fits(call.Input):
		call.RequiresAction, call.ApprovalCause, call.Refusal = "", "", v1alpha1.RefusalInputTooLarge
	}
}

// notAllowed reports whether the chat's policy or its mode forbids the call.
func (p *Performer) notAllowed(name string) bool {
	return !toolpolicy.Allows(p.chat.Spec.Tools, name) ||
		p.registry().Traits(name).In(p.chat.ModeInForce()) == tools.Forbidden
}

// requiredAction is whose action the call requires, and why if nobody asked for that.
func (p *Performer) requiredAction(name string) (v1alpha1.RequiredAction, v1alpha1.ApprovalCause) {
	action := tools.RequiresAction(p.chat.Spec.Tools, name)
	if action == v1alpha1.RequiresClient || !toolpolicy.Allows(p.chat.Spec.Tools, name) {
		return action, ""
	}
	traits := p.registry().Traits(name)
	switch use := traits.In(p.chat.ModeInForce()); {
	case use == tools.Forbidden: // Its result says so.
		return "", ""
	case p.changed(name):
		return v1alpha1.RequiresApproval, v1alpha1.ApprovalToolChanged
	case traits.ProposesPlan:
		return v1alpha1.RequiresApproval, v1alpha1.ApprovalPlanProposed
	case traits.OwnsApproval: // People are asked once it is known what the call would do.
		return "", ""
	case action == v1alpha1.RequiresApproval || p.served.offer.RequiresApproval(name):
		return v1alpha1.RequiresApproval, ""
	case use == tools.WithApproval:
		return v1alpha1.RequiresApproval, v1alpha1.ApprovalPlanMode
	}
	return "", ""
}
