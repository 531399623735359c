// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
)

// RequiredCalls are the calls of the message that people and clients are to be asked for in the turn with a client's
// newest results, which may be nil; nil if there are none.
func RequiredCalls(results *v1beta1.ClientResults, message *v1beta1.ChatMessage) (calls []v1beta1.PendingToolCall) {
	// A client's results come all at once, behind the calls.
	answered := results != nil && message.Spec.Index != nil && results.Position > *message.Spec.Index
	for i := range message.Spec.Parts {
		call := message.Spec.Parts[i].ToolCall
		if call != nil && (call.RequiresAction == v1beta1.RequiresApproval ||
			call.RequiresAction == v1beta1.RequiresClient && !answered) {
			calls = append(calls, approval.Of(call))
		}
	}
	questions := questionsOf(message)
	for i := range questions {
		calls = append(calls, approval.OfQuestion(&questions[i]))
	}
	return calls
}

// questionsOf are of the calls that ask people instead of having a result in the message.
func questionsOf(message *v1beta1.ChatMessage) []v1beta1.ToolQuestion {
	if g := message.Spec.Generation; g != nil {
		return g.Questions
	}
	return nil
}

// noteQuestions counts the calls that ask people among those that require action.
func noteQuestions(in *v1beta1.TurnInternalStatus, message *v1beta1.ChatMessage) {
	in.AskingMessage = ""
	asking := int32(len(questionsOf(message))) // At most 8, as the API bounds them.
	if asking == 0 {
		return
	}
	if in.CallsRequiringAction == 0 {
		in.CallingMessage = message.Name
	} else {
		in.AskingMessage = message.Name
	}
	in.PendingCalls, in.CallsRequiringAction = in.PendingCalls+asking, in.CallsRequiringAction+asking
}

// Recorded reports whether the chat says already that the decision counts.
func Recorded(chat *v1beta1.Chat, given *v1beta1.ToolApproval) bool {
	if required := chat.Status.RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.Decision != nil && call.Decision.Approval == given.Name {
				return true
			}
		}
	}
	return slices.ContainsFunc(chat.Status.Internal.Turn.Decisions,
		func(d v1beta1.ToolDecision) bool { return d.Approval == given.Name })
}
