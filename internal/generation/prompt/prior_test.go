// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"charm.land/fantasy"
	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

// priorTo is a message that stands for a conversation which was led elsewhere.
func priorTo() v1alpha1.ChatMessage {
	m := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, History: []v1alpha1.PriorMessage{
		{Role: v1alpha1.RoleUser, Content: "q", Files: []v1alpha1.PriorFile{{Name: "a.png", MediaType: "image/png",
			Data: base64.StdEncoding.EncodeToString([]byte(png))}}},
		{Role: v1alpha1.RoleAssistant, Content: "I look.", ToolCalls: []v1alpha1.PriorToolCall{
			{ID: "call_1", Name: "look", Input: `{"at":"a"}`}, {ID: "call_2", Name: "look"}}},
		{Role: v1alpha1.RoleTool, ToolResults: []v1alpha1.ToolResult{{ID: "call_1", Output: "a cat"}}},
		{Role: v1alpha1.RoleAssistant, Content: "A cat."},
		{Role: v1alpha1.RoleUser, Content: " "},
	}}}
	m.Name = "prior"
	return m
}

func TestEarlierConversationReadsLikeThisChats(t *testing.T) {
	images := prompt.Dialect{Images: true}
	told := prompt.Build(prompt.Input{Dialect: images, History: []v1alpha1.ChatMessage{user("r"), priorTo(), user("s")}})
	here := prompt.Build(prompt.Input{Dialect: images, History: []v1alpha1.ChatMessage{
		user("r"),
		said(v1alpha1.RoleUser, text("q"), inPlace("a.png", "image/png", png)),
		assistant(text("I look."), callOf("call_1", "look", `{"at":"a"}`), callOf("call_2", "look", "")),
		tool(result("call_1", "a cat")), assistant(text("A cat.")), user("s"),
	}})
	if diff := cmp.Diff(here, told, cmp.Comparer(sameError)); diff != "" {
		t.Error(diff)
	}
	files := 0
	for _, m := range told {
		for _, part := range m.Content {
			if _, ok := part.(fantasy.FilePart); ok {
				files++
			}
		}
	}
	check.Equal(t, "files", 1, files)
}

// sameError compares what the results of calls say that have none.
func sameError(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
