// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ChatMode bounds what the model of a chat may do.
// +kubebuilder:validation:Enum=Plan;Explore
type ChatMode string

const (
	// ModePlan has the model look and propose a plan. Nothing is changed before a person approves.
	ModePlan ChatMode = "Plan"
	// ModeExplore has the model look, and change nothing.
	ModeExplore ChatMode = "Explore"
)

// EffectiveMode is the mode that bounds the model now; empty: none does. A plan that was approved ends the mode Plan
// for the turn.
func (c *Chat) EffectiveMode() ChatMode {
	if c.Spec.Mode == ModePlan && c.Status.Turn != nil && c.Status.Turn.PlanApproved {
		return ""
	}
	return c.Spec.Mode
}

// MaxPlan is the most characters of a plan.
const MaxPlan = 32768

// Tools for people. ask_user_question is offered to chats in mode Plan, and to those that name it in tools.allow,
// propose_plan to chats in mode Plan.
const (
	// BuiltInAskUserQuestion asks people something.
	BuiltInAskUserQuestion BuiltInTool = "ask_user_question"
	// BuiltInProposePlan has people approve a plan.
	BuiltInProposePlan BuiltInTool = "propose_plan"
)
