// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/clip"
)

// CallingMessage is the reply whose calls the chat is about to ask people for; empty if it is not.
func CallingMessage(f *Facts) string {
	t := f.Chat.Status.Turn
	if f.Truncated != nil {
		t = f.Truncated.Turn
	}
	switch result := f.Result; {
	case f.Truncated != nil: // What the attempt yielded was said in a conversation that is no more.
	case f.Chat.Status.Phase != v1alpha1.ChatRunning:
		return ""
	case result != nil && result.Spec.Generation != nil && result.Spec.Generation.AwaitingCalls > 0:
		return result.Name
	}
	if t != nil && t.AwaitingCalls > 0 {
		return t.CallingMessage
	}
	return ""
}

// RequiredCalls are the calls of the message that people and clients are about to be asked for.
func RequiredCalls(f *Facts, message *v1alpha1.ChatMessage) (calls []v1alpha1.PendingToolCall) {
	for i := range message.Spec.Parts {
		if call := message.Spec.Parts[i].ToolCall; call != nil && stillAwaited(f, message, call) {
			calls = append(calls, v1alpha1.PendingToolCall{
				ID: call.ID, Name: call.Name, Input: clip.Bytes(call.Input, v1alpha1.MaxPendingInput), Kind: call.Awaits,
			})
		}
	}
	return calls
}

// stillAwaited reports whether the call waits for somebody. A client's results come all at once, behind the calls.
func stillAwaited(f *Facts, message *v1alpha1.ChatMessage, call *v1alpha1.ToolCall) bool {
	t := f.Chat.Status.Turn
	if f.Truncated != nil {
		t = f.Truncated.Turn
	}
	place := PlaceOfResults(t)
	answered := place != nil && message.Spec.Index != nil && place.Index > *message.Spec.Index
	return call.Awaits == v1alpha1.AwaitsApproval || call.Awaits == v1alpha1.AwaitsClient && !answered
}

// Recorded reports whether the chat says already that the decision counts.
func Recorded(chat *v1alpha1.Chat, approval *v1alpha1.ToolApproval) bool {
	if required := chat.Status.RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.Decision != nil && call.Decision.Approval == approval.Name {
				return true
			}
		}
	}
	t := chat.Status.Turn
	return t != nil && slices.ContainsFunc(t.Decisions, func(d v1alpha1.ToolDecision) bool { return d.Approval == approval.Name })
}
