// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package advisor

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// Type is what a result holds.
type Type string

const (
	// TypeAdvice is an advice. It alone counts as a use.
	TypeAdvice Type = "advice"
	// TypeLimitReached means that the advisor was not asked, because the turn has had all the advice that it may have.
	TypeLimitReached Type = "limit_reached"
	// TypeError means that the question or the call was wrong; Error says how.
	TypeError Type = "error"
)

// Result is what the model reads of a call.
type Result struct {
	Type   Type   `json:"type" doc:"advice, limit_reached or error."`
	Advice string `json:"advice,omitempty" doc:"What the advisor says."`
	Error  string `json:"error,omitempty" doc:"Why there is no advice, and what to do."`
	// Model that gave the advice, as its provider calls it.
	Model string `json:"advisor_model,omitempty" doc:"The model that was asked."`
	// RemainingUses of this turn.
	RemainingUses int32 `json:"remaining_uses" doc:"How often it can still be asked in this turn."`
}

// encode shortens a long advice until the whole fits into a result: one that is cut elsewhere is no JSON.
func (r Result) encode() (string, error) {
	advice := r.Advice
	for limit := tools.MaxResultBytes; ; limit /= 2 {
		r.Advice = tools.Truncate(advice, limit)
		out, err := json.Marshal(r)
		if err != nil {
			return "", fmt.Errorf("writing the result: %w", err)
		}
		if len(out) <= tools.MaxResultBytes || limit == 0 {
			return string(out), nil
		}
	}
}

// Used is how many pieces of advice the turn has had that the history ends with.
func Used(history []v1alpha1.ChatMessage) (n int32) {
	for i := range slices.Backward(history) {
		switch m := &history[i]; {
		case m.Spec.Role == v1alpha1.RoleUser:
			return n
		case m.Spec.Role == v1alpha1.RoleTool && m.Spec.Generation != nil: // Others are results of a client.
			n += adviceIn(m)
		}
	}
	return n
}

func adviceIn(m *v1alpha1.ChatMessage) (n int32) {
	for i := range m.Spec.Parts {
		r := m.Spec.Parts[i].ToolResult
		if r == nil || r.Name != v1alpha1.ToolAdvisor || r.IsError {
			continue
		}
		var result Result
		if json.Unmarshal([]byte(r.Output), &result) == nil && result.Type == TypeAdvice {
			n++
		}
	}
	return n
}
