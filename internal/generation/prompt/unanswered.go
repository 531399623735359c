// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import "parley.dev/parley/api/v1alpha1"

// noResult is how all that begins which the model reads in place of a result that never came.
const noResult = "This call has no result: "

// whyNoResult is the rest of it, by why the call was given up.
var whyNoResult = map[v1alpha1.CallsGivenUp]string{
	"":                        "it was cancelled, interrupted or not answered in time.",
	v1alpha1.CallsCancelled:   "the user cancelled it.",
	v1alpha1.CallsInterrupted: "the user interrupted the turn before the call was done.",
	v1alpha1.CallsTimedOut:    "it was not answered or approved in time.",
	v1alpha1.CallsFailed:      "an error ended the turn before the call was done.",
	v1alpha1.CallsEdited:      "the user changed the conversation before the call was done.",
}

// answer is the result of the call, or what says why it has none.
func (b *builder) answer(call place) *v1alpha1.ToolResult {
	if result := b.paired.answers[call]; result != nil {
		return result
	}
	why, known := whyNoResult[b.whyGivenUp(call.message)]
	if !known { // A newer version of the operator may know further reasons.
		why = whyNoResult[""]
	}
	return &v1alpha1.ToolResult{Output: noResult + why, IsError: true}
}

// whyGivenUp is why calls of the message have no result: the next reply or the next User message says it.
func (b *builder) whyGivenUp(message int) v1alpha1.CallsGivenUp {
	for i := message + 1; i < len(b.History); i++ {
		m := &b.History[i]
		switch {
		case m.Spec.Role == v1alpha1.RoleUser:
			return m.Status.CallsGivenUpBefore
		case m.Spec.Role == v1alpha1.RoleAssistant && m.Spec.Generation != nil:
			return m.Spec.Generation.CallsGivenUpBefore
		case m.Spec.Role == v1alpha1.RoleAssistant:
			return ""
		}
	}
	return b.CallsGivenUp
}
