// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"regexp"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

// Mistral refuses ids of other forms: "must be a-z, A-Z, 0-9, with a length of 9".
func TestHashedIDsAreUniqueAndStable(t *testing.T) {
	form := regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	dialect := prompt.Dialect{HashedIDs: 9, KeepsID: func(id string, _ bool) bool { return form.MatchString(id) }}
	message := func(role v1beta1.MessageRole, parts ...v1beta1.MessagePart) v1beta1.ChatMessage {
		return v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: role, Parts: parts}}
	}
	calls := func(ids ...string) (parts []v1beta1.MessagePart) {
		for _, id := range ids {
			parts = append(parts, v1beta1.MessagePart{Type: v1beta1.PartToolCall,
				ToolCall: &v1beta1.ToolCall{ID: id, Name: "f", Input: "{}"}})
		}
		return parts
	}
	results := func(ids ...string) (parts []v1beta1.MessagePart) {
		for _, id := range ids {
			parts = append(parts, v1beta1.MessagePart{Type: v1beta1.PartToolResult,
				ToolResult: &v1beta1.ToolResult{ID: id, Name: "f", Output: id}})
		}
		return parts
	}
	history := []v1beta1.ChatMessage{
		message(v1beta1.RoleAssistant, calls("call_1", "functions.f:0", "abcDEF123")...),
		message(v1beta1.RoleTool, results("call_1", "functions.f:0", "abcDEF123")...),
		message(v1beta1.RoleAssistant, calls("call_1")...),
		message(v1beta1.RoleTool, results("call_1")...),
	}
	var called, answered []string
	for _, m := range prompt.Build(prompt.Input{History: history, Dialect: dialect}) {
		for _, part := range m.Content {
			switch part := part.(type) {
			case fantasy.ToolCallPart:
				called = append(called, part.ToolCallID)
			case fantasy.ToolResultPart:
				answered = append(answered, part.ToolCallID)
			}
		}
	}
	check.Equal(t, "ids of results", called, answered)
	check.Equal(t, "calls", 4, len(called))
	check.Equal(t, "a valid id", "abcDEF123", called[2])
	used := map[string]bool{}
	for _, id := range called {
		if !form.MatchString(id) || used[id] {
			t.Errorf("id %q is not valid, or used before", id)
		}
		used[id] = true
	}
}
