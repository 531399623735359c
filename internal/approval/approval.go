// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval determines what people see of a tool call before they approve it, and whether a call is the approved
// one. The manager shows calls in the status of their chat, and generation pods check them before they run. Both use
// this package, so that a person approves exactly what runs. It is pure, and may import text.
//
// SplitByApproval in internal/tools/approval.go checks every call. Package toolpolicy determines which calls need
// approval.
package approval

import (
	"fmt"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/printable"
)

// Of is the status of a call that waits for a client or for approval.
func Of(call *v1beta1.ToolCall) v1beta1.PendingToolCall {
	return withDigest(v1beta1.PendingToolCall{ID: call.ID, Name: printable.Visible(call.Name), Input: Input(call.Input),
		Kind: call.RequiresAction, ApprovalCause: call.ApprovalCause})
}

// OfQuestion returns the pending call for a question that a tool asks people.
func OfQuestion(q *v1beta1.ToolQuestion) v1beta1.PendingToolCall {
	requests, _ := printable.VisibleJSON(q.Requests)
	return withDigest(v1beta1.PendingToolCall{ID: q.ID, Name: printable.Visible(q.Name), Input: Input(q.Input),
		Kind: v1beta1.RequiresApproval, ApprovalCause: q.Cause(), InputRequests: requests, Proposal: q.Proposal})
}

// QuestionFits reports whether people can see all that a call asks.
func QuestionFits(q *v1beta1.ToolQuestion) bool {
	requests, ok := printable.VisibleJSON(q.Requests)
	return (ok || q.Requests == "") && max(len(requests), len(q.Requests)) <= v1beta1.MaxInputRequests &&
		len(q.Proposal) <= v1beta1.MaxProposal
}

func withDigest(call v1beta1.PendingToolCall) v1beta1.PendingToolCall {
	if call.Kind == v1beta1.RequiresApproval {
		call.Digest = call.CallDigest()
	}
	return call
}

// Input is the input of a call as people see it; empty if it is too long to be shown.
func Input(raw string) string {
	if len(raw) > maxRaw {
		return ""
	}
	shown, ok := printable.VisibleJSON(raw)
	if !ok {
		shown = printable.Visible(raw)
	}
	if len(shown) > v1beta1.MaxPendingInput {
		return ""
	}
	return shown
}

// maxRaw is the maximum size of an input that is read. Whitespace between values is not shown.
const maxRaw = 4 * v1beta1.MaxPendingInput

// Fits reports whether people can see the whole input.
func Fits(raw string) bool { return raw == "" || Input(raw) != "" }

// TooLarge is the error of a call whose input does not fit.
func TooLarge(input string) error {
	return fmt.Errorf("the call was not run: a person must approve it, and its %d bytes of input do not fit into the %d "+
		"that people are shown, where a character that cannot be seen, and each space of a long run, takes 6. Make smaller "+
		"calls", len(input), v1beta1.MaxPendingInput)
}

// Applies reports whether a decision is about this very call. A call may be denied unseen.
func Applies(decision *v1beta1.ToolDecision, call *v1beta1.PendingToolCall) bool {
	unseen := decision.Digest == "" && decision.Decision == v1beta1.DecisionDeny
	return unseen || decision.Digest == call.Digest
}
