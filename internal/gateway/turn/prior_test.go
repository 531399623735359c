// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestAConversationThatIsResentBeginsAChat(t *testing.T) {
	picture := v1beta1.MessagePart{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "cat.png",
		MediaType: "image/png", Data: "aGk="}}
	r := turn.Request{Items: []turn.Item{{Kind: turn.System, Text: "Be brief."},
		{Kind: turn.User, Parts: []v1beta1.MessagePart{text("Hi."), picture}}, {Kind: turn.Reply, Text: "I look."},
		{Kind: turn.ToolCall, Call: "call_1", Name: "weather", Input: "{}"}, returned("call_1", "rain"), said("And?")}}
	chat := chattest.Chat("c")
	want := []v1beta1.PriorMessage{
		{Role: v1beta1.RoleUser, Content: "Hi.", Files: []v1beta1.PriorFile{{Name: "cat.png", MediaType: "image/png",
			Data: "aGk="}}},
		{Role: v1beta1.RoleAssistant, Content: "I look.",
			ToolCalls: []v1beta1.PriorToolCall{{ID: "call_1", Name: "weather", Input: "{}"}}},
		{Role: v1beta1.RoleTool, ToolResults: []v1beta1.ToolResult{{ID: "call_1", Name: "weather", Output: "rain"}}},
		{Role: v1beta1.RoleUser, Content: "And?"}}
	check.Equal(t, "history", want, r.Message(chat, "m", "h").Spec.History)
	chat.Status.History.Length = 3
	if spec := r.Message(chat, "m", "h").Spec; spec.History != nil || spec.Role != v1beta1.RoleTool {
		t.Errorf("a chat that knows the conversation is told %+v", spec)
	}
}
