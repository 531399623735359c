// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// advice is a result of the advisor, as the model reads it.
type advice struct {
	Type          string `json:"type"`
	Advice        string `json:"advice"`
	Error         string `json:"error"`
	Model         string `json:"advisor_model"`
	RemainingUses int32  `json:"remaining_uses"`
}

// questionOf is what the advisor is asked by a call of a tool; empty if that is no such call.
func questionOf(name, input string) string {
	var arguments struct {
		Question string `json:"question"`
	}
	if name != v1alpha1.ToolAdvisor || json.Unmarshal([]byte(input), &arguments) != nil {
		return ""
	}
	return strings.TrimSpace(arguments.Question)
}

// adviceOf reads the result of a tool; false if it is none of the advisor's.
func adviceOf(name, output string) (a advice, ok bool) {
	if name != v1alpha1.ToolAdvisor || json.Unmarshal([]byte(output), &a) != nil {
		return advice{}, false
	}
	return a, a.Type == "advice" || a.Type == "limit_reached" || a.Type == "error"
}

// heading says what became of the question.
func (a *advice) heading() string {
	switch {
	case a.Type == "limit_reached":
		return "the advisor was not asked: the turn has had all the advice that it may have"
	case a.Type == "error":
		return "the advisor gave no advice: " + OneLine(a.Error)
	case a.Model == "":
		return fmt.Sprintf("advice, %d more may be asked for in this turn:", a.RemainingUses)
	}
	return fmt.Sprintf("advice of %s, %d more may be asked for in this turn:", a.Model, a.RemainingUses)
}
