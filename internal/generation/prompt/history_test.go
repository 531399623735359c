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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

func user(content string) v1beta1.ChatMessage {
	return v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: content}}
}
func said(role v1beta1.MessageRole, parts ...v1beta1.MessagePart) v1beta1.ChatMessage {
	return v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: role, Parts: parts}}
}
func assistant(parts ...v1beta1.MessagePart) v1beta1.ChatMessage {
	return said(v1beta1.RoleAssistant, parts...)
}
func tool(parts ...v1beta1.MessagePart) v1beta1.ChatMessage {
	return said(v1beta1.RoleTool, parts...)
}
func text(s string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartText, Text: &s}
}
func reasoning(s string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartReasoning, Text: &s}
}
func call(id, input string) v1beta1.MessagePart { return callOf(id, "t", input) }
func callOf(id, name, input string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartToolCall,
		ToolCall: &v1beta1.ToolCall{ID: id, Name: name, Input: input}}
}
func result(id, output string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartToolResult,
		ToolResult: &v1beta1.ToolResult{ID: id, Name: "t", Output: output}}
}

// by says which model wrote a message.
func by(provider v1beta1.ModelProvider, model string, m v1beta1.ChatMessage) v1beta1.ChatMessage {
	m.Spec.Generation = &v1beta1.MessageGeneration{Model: &v1beta1.ModelIdentity{Provider: string(provider),
		Name: model}}
	return m
}

// byProvider makes a part one of a tool that the provider runs.
func byProvider(p v1beta1.MessagePart) v1beta1.MessagePart {
	if p.ToolCall != nil {
		p.ToolCall.ProviderExecuted = true
	} else {
		p.ToolResult.ProviderExecuted = true
	}
	return p
}

// with gives a part the metadata of its provider.
func with(metadata string, p v1beta1.MessagePart) v1beta1.MessagePart {
	p.ProviderMetadata = metadata
	return p
}

// signature is what Anthropic wants back with its reasoning.
const signature = `{"parley":{"type":"parley.state","data":{"protocol":"Anthropic Messages","signature":"signed"}}}`

// found is what Anthropic wants back with the result of a search.
const found = `{"parley":{"type":"parley.state","data":{"protocol":"Anthropic Messages","item":{"type":"web_search_tool_result","content":[{"type":"web_search_result","url":"https://example.com","title":"Example","encrypted_content":"c2NyaXB0ZWQ6Zm91bmQ6aHR0cHM6Ly9leGFtcGxlLmNvbQ=="}]}}}}`

// outline is a prompt in one line: what is signed has a *, what marks a cache ends in a ^.
func outline(messages []fantasy.Message) string {
	var lines []string
	for _, m := range messages {
		line := string(m.Role)
		for _, p := range m.Content {
			line += " " + outlineOf(p)
			if p.Options() != nil {
				line += "*"
			}
		}
		if m.ProviderOptions != nil {
			line += " ^"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " | ")
}

func outlineOf(p fantasy.MessagePart) string {
	switch p := p.(type) {
	case fantasy.TextPart:
		return p.Text
	case fantasy.ReasoningPart:
		return "(" + p.Text + ")"
	case fantasy.FilePart:
		return fmt.Sprintf("<%s %s %d>", p.Filename, p.MediaType, len(p.Data))
	case fantasy.ToolCallPart:
		return fmt.Sprintf("%s=%s%s", p.ToolCallID, p.ToolName, p.Input)
	case fantasy.ToolResultPart:
		switch out := p.Output.(type) {
		case fantasy.ToolResultOutputContentText:
			return p.ToolCallID + ":" + out.Text
		case fantasy.ToolResultOutputContentError:
			return p.ToolCallID + "!" + strings.Fields(out.Error.Error())[0]
		}
	}
	return "?"
}

// sealed is a reasoning that OpenAI encrypted.
func sealed(id string) v1beta1.MessagePart {
	return with(
		fmt.Sprintf(
			`{"parley":{"type":"parley.state","data":{"protocol":"Responses","item":{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"+/%s=="}}}}`, id, id), reasoning(""))
}

// searched is what is kept of a search that OpenAI ran: it tells no result.
func searched(id string) []v1beta1.MessagePart {
	return []v1beta1.MessagePart{byProvider(callOf(id, "web_search", `{"query":"x"}`)), byProvider(result(id, ""))}
}

func TestReasoningIsSentBackWithItsOutcomeOnly(t *testing.T) {
	join := func(parts ...[]v1beta1.MessagePart) (all []v1beta1.MessagePart) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	one := func(p ...v1beta1.MessagePart) []v1beta1.MessagePart { return p }
	for name, c := range map[string]struct {
		reply []v1beta1.MessagePart
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
			in := prompt.Input{History: []v1beta1.ChatMessage{user("q"),
				by(v1beta1.ProviderOpenAI, "gpt", assistant(c.reply...)), user("r")}}
			check.OK(t, w.send(t, in))
			for _, id := range []string{"rs_1", "rs_2", "rs_3"} {
				check.Equal(t, id, id == c.sent, strings.Contains(string(w.sent), `"`+id+`"`))
			}
		})
	}
}

// priorTo is a message that stands for a conversation which was led elsewhere.
func priorTo() v1beta1.ChatMessage {
	m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, History: []v1beta1.PriorMessage{
		{Role: v1beta1.RoleUser, Content: "q", Files: []v1beta1.PriorFile{{Name: "a.png", MediaType: "image/png",
			Data: base64.StdEncoding.EncodeToString([]byte(png))}}},
		{Role: v1beta1.RoleAssistant, Content: "I look.", ToolCalls: []v1beta1.PriorToolCall{
			{ID: "call_1", Name: "look", Input: `{"at":"a"}`}, {ID: "call_2", Name: "look"}}},
		{Role: v1beta1.RoleTool, ToolResults: []v1beta1.ToolResult{{ID: "call_1", Output: "a cat"}}},
		{Role: v1beta1.RoleAssistant, Content: "A cat."},
		{Role: v1beta1.RoleUser, Content: " "},
	}}}
	m.Name = "prior"
	return m
}

// Security (a client of the gateway): can invent replies of the model in an earlier conversation (history), as in any
// prompt; they belong to a User message, which is stamped with its author, and none of its calls is run. Also
// TestPeopleSpeakForThemselvesOnly of test/admission.
func TestEarlierConversationReadsLikeThisChats(t *testing.T) {
	images := prompt.Dialect{Images: true}
	told := prompt.Build(prompt.Input{Dialect: images, History: []v1beta1.ChatMessage{user("r"), priorTo(), user("s")}})
	here := prompt.Build(prompt.Input{Dialect: images, History: []v1beta1.ChatMessage{
		user("r"),
		said(v1beta1.RoleUser, text("q"), inPlace("a.png", "image/png", png)),
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
