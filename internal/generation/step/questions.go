// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/tools"
)

// answers are what people say to calls that have asked, by the ids of the calls.
func (p *Performer) answers(messages []v1alpha1.ChatMessage) map[string]tools.Answer {
	answers := map[string]tools.Answer{}
	for _, decision := range p.chat.Status.Internal.Turn.Decisions {
		if q := asked(messages, decision.ID); q != nil {
			given := decision.Decision == v1alpha1.DecisionApprove && approval.Applies(&decision, new(approval.OfQuestion(q)))
			answers[decision.ID] = tools.Answer{
				Question: tools.Question{Requests: q.Requests, Proposal: q.Proposal, State: q.ToolState},
				Given:    given, Content: decision.Content, Comment: decision.Comment,
			}
		}
	}
	return answers
}

// asked is what the call asked people last; nil if it has asked nothing.
func asked(messages []v1alpha1.ChatMessage, call string) *v1alpha1.ToolQuestion {
	for i := range slices.Backward(messages) {
		g := messages[i].Spec.Generation
		if g == nil {
			continue
		}
		for j := range g.Questions {
			if g.Questions[j].ID == call {
				return &g.Questions[j]
			}
		}
	}
	return nil
}
