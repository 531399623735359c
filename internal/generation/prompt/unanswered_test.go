// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
)

var everyReason = []v1alpha1.CallsGivenUp{
	v1alpha1.CallsCancelled, v1alpha1.CallsInterrupted, v1alpha1.CallsTimedOut, v1alpha1.CallsFailed, v1alpha1.CallsEdited,
}

// unansweredCall is a history that ends with a call, of which one result of two has come.
func unansweredCall() []v1alpha1.ChatMessage {
	call := func(id string) v1alpha1.MessagePart {
		return v1alpha1.MessagePart{Type: v1alpha1.PartToolCall, ToolCall: &v1alpha1.ToolCall{ID: id, Name: "open_ticket",
			Input: "{}"}}
	}
	return []v1alpha1.ChatMessage{
		{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, Content: "q"}},
		{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleAssistant, Generation: &v1alpha1.MessageGeneration{},
			Parts: []v1alpha1.MessagePart{call("1"), call("2")}}},
		{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleTool, Generation: &v1alpha1.MessageGeneration{},
			Parts: []v1alpha1.MessagePart{
				{Type: v1alpha1.PartToolResult, ToolResult: &v1alpha1.ToolResult{ID: "1", Name: "open_ticket", Output: "42"}},
			}}},
	}
}

func TestTheModelReadsWhyACallHasNoResultTheSameInEveryLaterStep(t *testing.T) {
	seen := map[string]bool{}
	for _, why := range everyReason {
		text := func(in prompt.Input) string {
			all := prompt.Texts(prompt.Build(in))
			return strings.Join(all, "|")
		}
		now := text(prompt.Input{History: unansweredCall(), CallsGivenUp: why})
		_, said, found := strings.Cut(now, "This call has no result: ")
		if !found || said == "" || seen[said] {
			t.Errorf("%s: the model reads %q", why, now)
		}
		seen[said] = true
		reply := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{
			Role: v1alpha1.RoleAssistant, Content: "", Generation: &v1alpha1.MessageGeneration{CallsGivenUpBefore: why},
			Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("Well.")}},
		}}
		next := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, Content: "and?"}}
		next.Status.CallsGivenUpBefore = why
		for _, follows := range []v1alpha1.ChatMessage{reply, next} {
			// What was given up since is about other calls.
			later := text(prompt.Input{History: append(unansweredCall(), follows), CallsGivenUp: v1alpha1.CallsEdited})
			if !strings.HasPrefix(later, now) {
				t.Errorf("%s: the model read %q, and later %q", why, now, later)
			}
		}
	}
}
