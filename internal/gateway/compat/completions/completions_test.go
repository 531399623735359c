// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

func answer() *wire.Answer {
	return &wire.Answer{Namespace: "demo", Chat: "chat-x", Message: "chat-x-1", Model: "large",
		Created: time.Unix(1_790_000_000, 0)}
}

var usage = v1beta1.TokenUsage{InputTokens: 5, CacheReadTokens: 4, OutputTokens: 3, ReasoningTokens: 2}

// blocks of two steps, the second of which has a call.
var blocks = []turn.Block{{Kind: turn.Reasoning, Text: "Hm."}, {Kind: turn.Text, Text: "I look."},
	{Kind: turn.Text, Text: "And again.", Step: 1}, {Kind: turn.Call, ID: "call_1", Name: "weather", Text: "{}", Step: 1}}

// stream tells an answer, and what was sent.
func streamed(t *testing.T, withUsage bool, end turn.End) (sent []string) {
	t.Helper()
	a := answer()
	a.WithUsage = withUsage
	s := completions.NewStream(a, func(event string, data []byte) error {
		check.Equal(t, "the name of an event", "", event)
		sent = append(sent, string(data))
		return nil
	})
	events := []turn.Event{}
	for i := range blocks {
		b := &blocks[i]
		half := len(b.Text) / 2
		events = append(events, turn.Event{Kind: turn.BlockStart, Block: b, Index: i},
			turn.Event{Kind: turn.BlockDelta, Block: b, Index: i, Text: b.Text[:half]},
			turn.Event{Kind: turn.BlockDelta, Block: b, Index: i, Text: b.Text[half:]},
			turn.Event{Kind: turn.BlockEnd, Block: b, Index: i})
	}
	err := s.Begin()
	for _, e := range append(events, turn.Event{Kind: turn.AnswerEnd, End: &end}) {
		err = errors.Join(err, s.Send(e))
	}
	check.OK(t, err)
	return sent
}

func TestOpenAIClientStreamEqualsWholeResponse(t *testing.T) {
	end := turn.End{Outcome: turn.RequiresAction, Usage: usage}
	sent := streamed(t, true, end)
	check.Equal(t, "the last event", "[DONE]", sent[len(sent)-1])
	if !strings.Contains(sent[len(sent)-2], `"choices":[],"usage"`) || !strings.Contains(sent[0], `"role":"assistant"`) {
		t.Errorf("sent is %q", sent)
	}
	var streamed openai.ChatCompletionAccumulator
	for _, data := range sent[:len(sent)-1] {
		var c openai.ChatCompletionChunk
		if err := json.Unmarshal([]byte(data), &c); err != nil || !streamed.AddChunk(c) {
			t.Fatalf("OpenAI's client does not read %s: %v", data, err)
		}
	}
	a := answer()
	a.Blocks, a.End = blocks, &end
	whole := completions.Of(a)
	raw, err := json.Marshal(whole)
	check.OK(t, err)
	var collected openai.ChatCompletion
	check.OK(t, json.Unmarshal(raw, &collected))
	for _, read := range []openai.ChatCompletion{streamed.ChatCompletion, collected} {
		m := read.Choices[0].Message
		got := []any{read.ID, m.Content, m.ToolCalls[0].ID, m.ToolCalls[0].Function.Name, m.ToolCalls[0].Function.Arguments,
			read.Choices[0].FinishReason, read.Usage.PromptTokens, read.Usage.CompletionTokens, read.Usage.TotalTokens}
		want := []any{"chatcmpl-chat-x-1", "I look.\n\nAnd again.", "call_1_chat-x", "weather", "{}", "tool_calls", int64(9), int64(3),
			int64(12)}
		check.Equal(t, "what the SDK reads", want, got)
	}
	check.Equal(t, "the reasoning is", "Hm.", whole.Choices[0].Message.ReasoningContent)
}

func TestStreamWithoutUsageOmitsUsageChunk(t *testing.T) {
	if sent := streamed(t, false, turn.End{Outcome: turn.Completed}); strings.Contains(strings.Join(sent, ""), "usage") {
		t.Errorf("sent is %q", sent)
	}
}

func TestStreamOfRefusalHasItsText(t *testing.T) {
	sent := streamed(t, false, turn.End{Outcome: turn.Completed, Reply: v1beta1.ReplyRefused})
	check.Contains(t, sent[len(sent)-2], `"refusal":"I look.\n\nAnd again."`)
}

func TestAFailedTurnIsAnError(t *testing.T) {
	end := turn.End{Outcome: turn.Failed, Error: &stream.Error{
		Reason: v1beta1.ErrorBudgetReached, Message: "It is spent."}}
	sent := streamed(t, true, end)
	want := `{"error":{"message":"It is spent.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
	check.Equal(t, "the last event", want, sent[len(sent)-1])
}

func TestARequestIsRead(t *testing.T) {
	got, err := completions.Read([]byte(`{"model": "large", "n": 1, "temperature": 0, "user": "u", "max_tokens": 5, "tool_choice": "auto",
		"stream": true, "stream_options": {"include_usage": true}, "reasoning_effort": "low", "response_format": {"type": "text"},
		"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "What is this?"},
			{"type": "image_url", "image_url": {"url": "https://example.org/cat.jpg?size=1"}}]},
			{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1_chat-x", "type": "function"}]},
			{"role": "tool", "tool_call_id": "call_1_chat-x", "content": "rain"}]}`))
	check.OK(t, err)
	if !got.Stream || !got.Usage || !got.Temporary || got.Effort != v1beta1.EffortLow || got.Tools != nil {
		t.Errorf("read is %+v", got)
	}
	text := "What is this?"
	want := []turn.Item{{Kind: turn.System, Text: "Be brief."},
		{Kind: turn.User, Parts: []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: &text},
			{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "image", MediaType: "image/jpeg",
				URL: "https://example.org/cat.jpg?size=1"}}}},
		{Kind: turn.Reply}, {Kind: turn.ToolCall, Call: "call_1_chat-x"},
		{Kind: turn.ToolResult, Call: "call_1_chat-x", Text: "rain"}}
	check.Equal(t, "items", want, got.Items)
}

func TestUnsupportedRequestIsRejectedNamingTheField(t *testing.T) {
	for body, param := range map[string]string{
		`{"n": 2}`: "n", `{"logprobs": true}`: "logprobs", `{"audio": {"voice": "x"}}`: "audio", `{"stop": ["a", "b", "c", "d", "e"]}`: "stop",
		`{"modalities": ["text", "audio"]}`: "modalities", `{"response_format": {"type": "grammar"}}`: "response_format",
		`{"tool_choice": {"type": "allowed_tools"}}`: "tool_choice", `{"functions": [{}]}`: "functions", `{"logit_bias": {"1": 1}}`: "logit_bias",
		`{"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "array"}}}}`: "response_format.json_schema.schema",
		`{"tools": [{"type": "custom"}]}`:                                        "tools[0]",
		`{"messages": [{"role": "narrator", "content": "x"}]}`:                   "messages[0].role",
		`{"messages": [{"role": "tool", "content": "x"}]}`:                       "messages[0].tool_call_id",
		`{"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}`: "messages[0].content[0]",
		`{"messages": [{"role": "user", "content": 7}]}`:                         "messages",
		`{"messages": "x"}`: "messages",
	} {
		_, err := completions.Read([]byte(body))
		no, ok := errors.AsType[*wire.Error](err)
		if !ok || no.Param == nil || *no.Param != param || no.Status != 400 || no.Type != wire.InvalidRequest {
			t.Errorf("%s: %+v", body, err)
		}
	}
}

func TestSettingsOfTheTurnAreRead(t *testing.T) {
	got, err := completions.Read([]byte(`{"stop": "END", "tool_choice": {"type": "function", "function": {"name": "weather"}},
		"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object"}}}}`))
	check.OK(t, err)
	want := turn.Settings{Stop: []string{"END"}, ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceTool, Tool: "weather"},
		Output: &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(`{"type": "object"}`)}}}
	check.Equal(t, "settings", want, got.Settings)
}
