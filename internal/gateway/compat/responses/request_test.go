// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/responses"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

func TestARequestIsRead(t *testing.T) {
	got, err := responses.Read([]byte(`{"model": "large", "stream": true, "store": false, "instructions": "Be brief.",
		"temperature": 0.7, "reasoning": {"effort": "high", "summary": "auto"}, "previous_response_id": "resp_chat-x-1",
		"tools": [{"type": "function", "name": "weather", "strict": false, "parameters": {"type": "object"}}, {"type": "web_search"},
			{"type": "namespace", "name": "agents"}],
		"input": [{"role": "developer", "content": "Be kind."}, {"type": "message", "role": "user", "content": [
			{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]},
			{"type": "reasoning", "id": "rs_1", "summary": []},
			{"type": "function_call", "call_id": "call_1_chat-x", "name": "weather", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "call_1_chat-x", "output": [{"type": "input_text", "text": "rain"}]}]}`))
	check.OK(t, err)
	if !got.Stream || !got.Temporary || got.Model != "large" || got.Effort != v1beta1.EffortHigh ||
		got.Previous != "chat-x-1" || len(got.Tools) != 1 {
		t.Errorf("read is %+v", got)
	}
	text := "What is this?"
	want := []turn.Item{{Kind: turn.System, Text: "Be brief."}, {Kind: turn.System, Text: "Be kind."},
		{Kind: turn.User, Parts: []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: &text},
			{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "image", MediaType: "image/png", Data: "aGk="}}}},
		{Kind: turn.Reply}, {Kind: turn.ToolCall, Call: "call_1_chat-x", Name: "weather", Input: "{}"},
		{Kind: turn.ToolResult, Call: "call_1_chat-x", Text: "rain"}}
	check.Equal(t, "items", want, got.Items)
}

func TestUnsupportedRequestIsRejectedNamingTheField(t *testing.T) {
	for body, param := range map[string]string{
		`{"input": ""}`: "input",
		`{"input": 1}`:  "input",
		`{}`:            "input",
		`{"input": "x", "previous_response_id": "resp_../../secrets"}`:                               "previous_response_id",
		`{"input": "x", "previous_response_id": "chatcmpl-1"}`:                                       "previous_response_id",
		`{"input": "x", "conversation": "a/b"}`:                                                      "conversation",
		`{"input": "x", "conversation": {"id": "a"}, "previous_response_id": "resp_a"}`:              "conversation",
		`{"input": "x", "tool_choice": {"type": "mcp"}}`:                                             "tool_choice",
		`{"input": "x", "parallel_tool_calls": false}`:                                               "parallel_tool_calls",
		`{"input": "x", "prompt": {"id": "p"}}`:                                                      "prompt",
		`{"input": "x", "text": {"format": {"type": "grammar"}}}`:                                    "text.format",
		`{"input": "x", "text": {"format": {"type": "json_schema", "schema": {"anyOf": []}}}}`:       "text.format.schema",
		`{"input": "x", "tools": [{"type": "computer_use_preview"}]}`:                                "tools[0]",
		`{"input": "x", "tools": [{"type": "function", "name": "f", "parameters": "none"}]}`:         "tools[0]",
		`{"input": "x", "reasoning": {"effort": "frantic"}}`:                                         "reasoning.effort",
		`{"input": [{"type": "computer_call"}]}`:                                                     "input[0]",
		`{"input": [{"role": "narrator", "content": "x"}]}`:                                          "input[0].role",
		`{"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}`:         "input[0].content[0]",
		`{"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]}]}`: "input[0].content[0].image_url",
		`{"input": [{"type": "function_call_output", "output": "x"}]}`:                               "input[0].call_id",
		`{"input": "x", "stream": "yes"}`:                                                            "stream",
	} {
		_, err := responses.Read([]byte(body))
		no, ok := errors.AsType[*wire.Error](err)
		if !ok || no.Param == nil || *no.Param != param || no.Status != 400 || no.Type != wire.InvalidRequest {
			t.Errorf("%s: %+v", body, err)
		}
	}
}

func TestSettingsOfTheTurnAreRead(t *testing.T) {
	got, err := responses.Read([]byte(`{"input": "x", "tool_choice": {"type": "function", "name": "weather"},
		"text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "object"}}}}`))
	check.OK(t, err)
	want := turn.Settings{ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceTool, Tool: "weather"},
		Output: &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(`{"type": "object"}`)}}}
	check.Equal(t, "settings", want, got.Settings)
}

func TestAResponseRepeatsFormatAndChoice(t *testing.T) {
	output := func(schema string) *v1beta1.OutputFormat {
		return &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(schema)}}
	}
	for want, a := range map[string]*wire.Answer{
		`{"type":"text"} "auto"`: {},
		`{"type":"json_object"} "required"`: {Output: output(`{"type":"object"}`),
			ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceRequired}},
		`{"type":"json_schema","name":"answer","schema":{"type":"object","required":["a"]},"strict":true} ` +
			`{"name":"f","type":"function"}`: {Output: output(`{"type":"object","required":["a"]}`),
			ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceTool, Tool: "f"}},
	} {
		r := responses.Of(a)
		format, _ := json.Marshal(r.Text.Format)
		choice, _ := json.Marshal(r.ToolChoice)
		check.Equal(t, "the response says", want, string(format)+" "+string(choice))
	}
}
