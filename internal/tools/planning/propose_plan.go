// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// proposePlan has people approve a plan. A call is run once they have.
type proposePlan struct{}

// Name is propose_plan.
func (proposePlan) Name() string { return string(v1alpha1.BuiltInProposePlan) }

// In mode Plan it may be called.
func (proposePlan) In(mode v1alpha1.ChatMode) tools.Use {
	if mode == v1alpha1.ModePlan {
		return tools.Free
	}
	return tools.Forbidden
}

// On reports whether the chat plans.
func (proposePlan) On(chat *v1alpha1.Chat) bool { return chat.ModeInForce() == v1alpha1.ModePlan }

// Proposing implements tools.Proposing.
func (proposePlan) Proposing() {}

// Exclusive, because what is approved is the plan and nothing besides.
func (proposePlan) Exclusive() {}

// Repeatable, because it does nothing but say that the plan was approved.
func (proposePlan) Repeatable() {}

// Description tells the model when to call it.
func (proposePlan) Description() string {
	return "Proposes a plan to people: what you will do, step by step, and what that changes. Call it alone, once you " +
		"know enough. If they approve, you have all your tools and carry it out; if not, you read why."
}

// InputSchema has the plan.
func (proposePlan) InputSchema() map[string]any {
	return arguments.Object(map[string]any{
		"plan": arguments.Text(1, v1alpha1.MaxPlan, "The plan, as Markdown. It must say all that people need to decide."),
	}, "plan")
}

type planResult struct {
	Approved bool   `json:"approved" doc:"true."`
	Note     string `json:"note" doc:"What is next."`
}

// Reference is what people read of the tool.
func (proposePlan) Reference() tools.Reference {
	return tools.Reference{
		Offered: "chats whose `spec.mode` is Plan, until a plan is approved in the turn", Result: planResult{},
		Errors: []string{
			"People did not approve the plan: the model reads what they say.",
			"It was not called alone.",
		},
		Limits: []string{"A call waits for a ToolApproval, whatever `spec.tools.approval` says."},
	}
}

// Run says that the plan was approved.
func (t proposePlan) Run(_ context.Context, call tools.Call) (string, error) {
	var given struct {
		Plan string `json:"plan"`
	}
	if err := arguments.Decode(t.InputSchema(), call.Input, &given); err != nil {
		return "", err
	}
	if strings.TrimSpace(given.Plan) == "" {
		return "", errors.New("plan is blank: nobody can approve of that")
	}
	return tools.Encode(planResult{
		Approved: true, Note: "The plan was approved. You have all your tools now: carry it out."})
}
