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

type planResult struct {
	Approved bool   `json:"approved" doc:"true."`
	Note     string `json:"note" doc:"What is next."`
}

func (proposePlan) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1alpha1.BuiltInProposePlan),
		Description: "Proposes a plan to people: what you will do, step by step, and what that changes. Call it alone, " +
			"once you know enough. If they approve, you have all your tools and carry it out; if not, you read why.",
		InputSchema: arguments.Object(map[string]any{
			"plan": arguments.Text(1, v1alpha1.MaxPlan, "The plan, as Markdown. It must say all that people need to decide."),
		}, "plan"),
		Traits: tools.Traits{Plan: tools.Free, EnabledFor: plans, Exclusive: true, Repeatable: true, ProposesPlan: true},
		Reference: tools.Reference{
			Offered: "chats whose `spec.mode` is Plan, until a plan is approved in the turn", Result: planResult{},
			Errors: []string{
				"People did not approve the plan: the model reads what they say.",
				"It was not called alone.",
			},
			Limits: []string{"A call waits for a ToolApproval, whatever `spec.tools.approval` says."},
		},
	}
}

// Run says that the plan was approved.
func (t proposePlan) Run(_ context.Context, call tools.Call) (string, error) {
	var given struct {
		Plan string `json:"plan"`
	}
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return "", err
	}
	if strings.TrimSpace(given.Plan) == "" {
		return "", errors.New("plan is blank: there is nothing to approve")
	}
	return tools.Encode(planResult{
		Approved: true, Note: "The plan was approved. You have all your tools now: carry it out."})
}
