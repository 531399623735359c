// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/step"
)

func user(content string) v1alpha1.ChatMessage {
	return v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, Content: content}}
}
func said(role v1alpha1.MessageRole, parts ...v1alpha1.MessagePart) v1alpha1.ChatMessage {
	return v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: role, Parts: parts}}
}
func assistant(parts ...v1alpha1.MessagePart) v1alpha1.ChatMessage {
	return said(v1alpha1.RoleAssistant, parts...)
}
func tool(parts ...v1alpha1.MessagePart) v1alpha1.ChatMessage {
	return said(v1alpha1.RoleTool, parts...)
}
func text(s string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: &s}
}
func reasoning(s string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartReasoning, Text: &s}
}
func call(id, input string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartToolCall, ToolCall: &v1alpha1.ToolCall{ID: id, Name: "t", Input: input}}
}
func result(id, output string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartToolResult, ToolResult: &v1alpha1.ToolResult{ID: id, Name: "t", Output: output}}
}

// byProvider makes a part one of a tool that the provider runs.
func byProvider(p v1alpha1.MessagePart) v1alpha1.MessagePart {
	if p.ToolCall != nil {
		p.ToolCall.ProviderExecuted = true
	} else {
		p.ToolResult.ProviderExecuted = true
	}
	return p
}

// outline is a prompt in one line.
func outline(messages []fantasy.Message) string {
	var lines []string
	for _, m := range messages {
		line := string(m.Role)
		for _, p := range m.Content {
			switch p := p.(type) {
			case fantasy.TextPart:
				line += " " + p.Text
			case fantasy.ReasoningPart:
				line += " (" + p.Text + ")"
			case fantasy.ToolCallPart:
				line += fmt.Sprintf(" %s=%s%s", p.ToolCallID, p.ToolName, p.Input)
			case fantasy.ToolResultPart:
				switch out := p.Output.(type) {
				case fantasy.ToolResultOutputContentText:
					line += " " + p.ToolCallID + ":" + out.Text
				case fantasy.ToolResultOutputContentError:
					line += " " + p.ToolCallID + "!" + strings.Fields(out.Error.Error())[0]
				}
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " | ")
}

func TestThePromptObeysWhatProvidersDemand(t *testing.T) {
	failedResult := result("a", "broken")
	failedResult.ToolResult.IsError = true
	cases := map[string]struct {
		system  string
		history []v1alpha1.ChatMessage
		want    string
	}{
		"the system prompt first, then the messages in order": {
			"sys", []v1alpha1.ChatMessage{user("one"), assistant(text("two")), user("three")}, "system sys | user one | assistant two | user three",
		},
		"no system prompt":        {"", []v1alpha1.ChatMessage{user("one")}, "user one"},
		"a user message of parts": {"", []v1alpha1.ChatMessage{said(v1alpha1.RoleUser, text("one"), text(""), text("two"))}, "user one two"},
		"calls and results": {
			"", []v1alpha1.ChatMessage{user("q"), assistant(text("see"), call("a", "{}"), call("b", "{}")), tool(result("a", "1"), result("b", "2")), assistant(text("done"))},
			"user q | assistant see a=t{} b=t{} | tool a:1 b:2 | assistant done",
		},
		"a result that is an error":     {"", []v1alpha1.ChatMessage{assistant(call("a", "{}")), tool(failedResult)}, "assistant a=t{} | tool a!broken"},
		"a call without arguments":      {"", []v1alpha1.ChatMessage{assistant(call("a", "")), tool(result("a", ""))}, "assistant a=t{} | tool a:"},
		"a call at the end is answered": {"", []v1alpha1.ChatMessage{user("q"), assistant(call("a", "{}"))}, "user q | assistant a=t{} | tool a!This"},
		"calls are answered in order before a user speaks": {
			"", []v1alpha1.ChatMessage{assistant(call("b", "{}"), call("a", "{}")), user("go on")}, "assistant b=t{} a=t{} | tool b!This a!This | user go on",
		},
		"the one call without a result is answered": {
			"", []v1alpha1.ChatMessage{assistant(call("a", "{}"), call("b", "{}")), tool(result("a", "1")), assistant(text("x"))},
			"assistant a=t{} b=t{} | tool a:1 b!This | assistant x",
		},
		"results of no call are left out": {
			"", []v1alpha1.ChatMessage{user("q"), tool(result("z", "1")), assistant(call("a", "{}")), tool(result("a", "1"), result("a", "again"), result("z", "1"))},
			"user q | assistant a=t{} | tool a:1",
		},
		"a result after a user spoke is left out": {
			"", []v1alpha1.ChatMessage{assistant(call("a", "{}")), user("q"), tool(result("a", "late"))}, "assistant a=t{} | tool a!This | user q",
		},
		"parts that say nothing are left out": {
			"", []v1alpha1.ChatMessage{user("q"), assistant(reasoning(""), text(""), reasoning("hm"), text("x"))}, "user q | assistant (hm) x",
		},
		"messages that say nothing are left out": {"", []v1alpha1.ChatMessage{user("q"), assistant(text("")), user("r")}, "user q | user r"},
		"ids in characters that every provider takes": {
			"", []v1alpha1.ChatMessage{assistant(call("f.t:1", "{}")), tool(result("f.t:1", "1"))}, "assistant f_t_1=t{} | tool f_t_1:1",
		},
		"a provider's own call with its result": {
			"", []v1alpha1.ChatMessage{assistant(byProvider(call("s", "{}")), byProvider(result("s", "found")), text("x"))}, "assistant s=t{} s:found x",
		},
		"a provider's own call or result alone is left out": {
			"", []v1alpha1.ChatMessage{assistant(byProvider(call("s", "{}")), byProvider(result("r", "1")), text("x"))}, "assistant x",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := prompt.Build(c.system, c.history)
			if err != nil || outline(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", outline(got), err, c.want)
			}
		})
	}
}

func TestTheSignatureOfReasoningComesBack(t *testing.T) {
	a := step.NewAccumulator(v1alpha1.ProviderAnthropic, 1, nil)
	a.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeReasoningDelta, ID: "0", Delta: "hm"})
	a.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeReasoningEnd, ID: "0",
		ProviderMetadata: fantasy.ProviderMetadata{anthropic.Name: &anthropic.ReasoningOptionMetadata{Signature: "signed"}}})
	got, err := prompt.Build("", []v1alpha1.ChatMessage{assistant(a.Finish().Parts...)})
	if err != nil || outline(got) != "assistant (hm)" {
		t.Fatalf("got %s, %v", outline(got), err)
	}
	options := got[0].Content[0].(fantasy.ReasoningPart).ProviderOptions
	if m, ok := options[anthropic.Name].(*anthropic.ReasoningOptionMetadata); !ok || m.Signature != "signed" {
		t.Errorf("got %+v", options)
	}
}

func TestMetadataThatCannotBeReadIsAnError(t *testing.T) {
	for _, metadata := range []string{"{", `{"anthropic":{"type":"nobody.knows","data":{}}}`} {
		part := reasoning("hm")
		part.ProviderMetadata = metadata
		broken := assistant(part)
		broken.Name = "chat-3-1"
		if _, err := prompt.Build("", []v1alpha1.ChatMessage{broken}); err == nil || !strings.Contains(err.Error(), "chat-3-1") {
			t.Errorf("%s: got %v", metadata, err)
		}
	}
}
