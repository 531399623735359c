// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"charm.land/fantasy"
	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

// sealed is a reasoning that OpenAI encrypted.
func sealed(id string) v1alpha1.MessagePart {
	return with(
		fmt.Sprintf(
			`{"parley":{"type":"parley.state","data":{"protocol":"Responses","item":{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"+/%s=="}}}}`, id, id), reasoning(""))
}

// searched is what is kept of a search that OpenAI ran: it tells no result.
func searched(id string) []v1alpha1.MessagePart {
	return []v1alpha1.MessagePart{byProvider(callOf(id, "web_search", `{"query":"x"}`)), byProvider(result(id, ""))}
}

func TestReasoningIsSentBackWithItsOutcomeOnly(t *testing.T) {
	join := func(parts ...[]v1alpha1.MessagePart) (all []v1alpha1.MessagePart) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	one := func(p ...v1alpha1.MessagePart) []v1alpha1.MessagePart { return p }
	for name, c := range map[string]struct {
		reply []v1alpha1.MessagePart
		sent  string
	}{
		"a search": {join(one(sealed("rs_1")), searched("ws_1"), one(sealed("rs_2"), text("It is y."))),
			"rs_2"},
		"two searches": {join(one(sealed("rs_1")), searched("ws_1"), one(sealed("rs_2")), searched("ws_2"),
			one(sealed("rs_3"), text("It is y."))), "rs_3"},
		"no reasoning between": {join(one(sealed("rs_1")), searched("ws_1"), searched("ws_2"), one(text("It is y."))), ""},
		"a call before a search": {join(one(sealed("rs_1"), call("call_1", "{}"), sealed("rs_2")), searched("ws_1")),
			"rs_1"},
		"a search of no result": {one(sealed("rs_1"), byProvider(callOf("ws_1", "web_search", "{}")), sealed("rs_2"),
			text("It is y.")), "rs_2"},
		"nothing but a reasoning": {one(sealed("rs_1"), text("It is y.")), "rs_1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, wires["openai-responses"])
			in := prompt.Input{History: []v1alpha1.ChatMessage{user("q"),
				by(v1alpha1.ProviderOpenAI, "gpt", assistant(c.reply...)), user("r")}}
			check.OK(t, w.send(t, in))
			for _, id := range []string{"rs_1", "rs_2", "rs_3"} {
				check.Equal(t, id, id == c.sent, strings.Contains(string(w.sent), `"`+id+`"`))
			}
		})
	}
}

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
