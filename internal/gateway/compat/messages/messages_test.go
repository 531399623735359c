// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/messages"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

func answer() *wire.Answer {
	return &wire.Answer{Namespace: "demo", Chat: "chat-x", Message: "chat-x-1", Model: "large",
		Created: time.Unix(1_790_000_000, 0)}
}

var usage = v1beta1.TokenUsage{InputTokens: 5, CacheReadTokens: 4, CacheWriteTokens: 2, OutputTokens: 3}

// blocks of two steps, the second of which has a call.
var blocks = []turn.Block{{Kind: turn.Reasoning, Text: "Hm."}, {Kind: turn.Text, Text: "I look."},
	{Kind: turn.Text, Text: "And again.", Step: 1},
	{Kind: turn.Call, ID: "call_1", Name: "weather", Text: `{"city":"Rome"}`, Step: 1}}

// sentEvent is an event of a stream.
type sentEvent struct{ Name, Data string }

// streamed is what is sent of an answer.
func streamed(t *testing.T, end turn.End) (sent []sentEvent) {
	t.Helper()
	s := messages.NewStream(answer(), func(event string, data []byte) error {
		sent = append(sent, sentEvent{event, string(data)})
		return nil
	})
	err := s.Begin()
	for i := range blocks {
		b := &blocks[i]
		half := len(b.Text) / 2
		err = errors.Join(err, s.Send(turn.Event{Kind: turn.BlockStart, Block: b, Index: i}),
			s.Send(turn.Event{Kind: turn.BlockDelta, Block: b, Index: i, Text: b.Text[:half]}),
			s.Send(turn.Event{Kind: turn.BlockDelta, Block: b, Index: i, Text: b.Text[half:]}),
			s.Send(turn.Event{Kind: turn.BlockEnd, Block: b, Index: i}))
	}
	if err = errors.Join(err, s.Send(turn.Event{Kind: turn.AnswerEnd, End: &end})); err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestAnthropicClientStreamEqualsWholeResponse(t *testing.T) {
	end := turn.End{Outcome: turn.RequiresAction, Usage: usage}
	var told, whole anthropic.Message
	for _, e := range streamed(t, end) {
		var event anthropic.MessageStreamEventUnion
		if err := json.Unmarshal([]byte(e.Data), &event); err != nil || event.Type != e.Name {
			t.Fatalf("Anthropic's client does not read %v: %v", e, err)
		}
		check.OK(t, told.Accumulate(event))
	}
	a := answer()
	a.Blocks, a.End = blocks, &end
	raw, err := json.Marshal(messages.Of(a))
	check.OK(t, err)
	check.OK(t, json.Unmarshal(raw, &whole))
	for _, read := range []anthropic.Message{told, whole} {
		got := []any{read.ID, string(read.Model), len(read.Content), read.Content[0].Thinking, read.Content[1].Text,
			read.Content[2].Text, read.Content[3].ID, read.Content[3].Name, string(read.Content[3].Input),
			string(read.StopReason),
			read.Usage.InputTokens, read.Usage.CacheReadInputTokens, read.Usage.CacheCreationInputTokens,
			read.Usage.OutputTokens}
		want := []any{"msg_chat-x-1", "large", 4, "Hm.", "I look.", "And again.", "call_1_chat-x", "weather",
			`{"city":"Rome"}`,
			"tool_use", int64(5), int64(4), int64(2), int64(3)}
		check.Equal(t, "what the SDK reads", want, got)
	}
}

func TestAFailedTurnIsAnError(t *testing.T) {
	end := turn.End{Outcome: turn.Failed, Error: &stream.Error{
		Reason: v1beta1.ErrorBudgetReached, Message: "It is spent."}}
	sent := streamed(t, end)
	want := sentEvent{"error", `{"error":{"type":"rate_limit_error","message":"It is spent."},"type":"error"}`}
	check.Equal(t, "the last event", want, sent[len(sent)-1])
}

func TestWhyAnAnswerHasEnded(t *testing.T) {
	for want, end := range map[anthropic.StopReason]turn.End{
		anthropic.StopReasonEndTurn:   {Outcome: turn.Completed, Reply: v1beta1.ReplyComplete},
		anthropic.StopReasonMaxTokens: {Outcome: turn.Completed, Reply: v1beta1.ReplyMaxTokensReached},
		anthropic.StopReasonRefusal:   {Outcome: turn.Completed, Reply: v1beta1.ReplyRefused},
		anthropic.StopReasonToolUse:   {Outcome: turn.RequiresAction},
	} {
		a := answer()
		a.End = &end
		check.Equal(t, end, string(want), *messages.Of(a).StopReason)
	}
}

func TestRefusalsHaveTheTypesThatAnthropicHas(t *testing.T) {
	for status, want := range map[int]string{400: "invalid_request_error", 404: "not_found_error",
		413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error", 504: "timeout_error"} {
		e := &wire.Error{Status: status, Type: wire.InvalidRequest, Message: "no"}
		if status == 404 {
			e.Type = wire.NotFound
		}
		got := messages.Refusal(e)
		if got.Type != "error" || got.Error.Type != want || got.Error.Message != "no" {
			t.Errorf("%d: %+v", status, got)
		}
	}
}

func TestARequestIsRead(t *testing.T) {
	got, err := messages.Read([]byte(`{"model": "large", "max_tokens": 5, "temperature": 0, "stream": true,
		"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
			{"type": "text", "text": "Be kind."}],
		"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}, "tool_choice": {"type": "auto"},
		"metadata": {"user_id": "u"},
		"tools": [{"name": "weather", "description": "Tells it.", "input_schema": {"type": "object"}}],
		"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"},
			{"type": "image", "source": {"type": "base64", "media_type": "image/PNG", "data": "aGk+"}},
			{"type": "document", "title": "../q.pdf", "source": {"type": "url", "url": "https://example.org/q.pdf"}},
			{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Notes."}}]},
			{"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "x"},
				{"type": "text", "text": "I look."},
				{"type": "tool_use", "id": "call_1_chat-x", "name": "weather", "input": {"city": "Rome"}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1_chat-x", "is_error": true,
				"content": [{"type": "text", "text": "no answer"}, {"type": "image", "source": {"type": "base64"}}]},
				{"type": "text", "text": "And now?"}]}]}`))
	check.OK(t, err)
	if !got.Stream || !got.Temporary || got.Effort != v1beta1.EffortLow || len(got.Tools) != 1 ||
		got.Tools[0].Name != "weather" {
		t.Errorf("read is %+v", got)
	}
	file := func(name, kind, data, url string) v1beta1.MessagePart {
		return v1beta1.MessagePart{Type: v1beta1.PartFile,
			File: &v1beta1.MessageFile{Name: name, MediaType: kind, Data: data, URL: url}}
	}
	want := []turn.Item{{Kind: turn.System, Text: "Be brief.\n\nBe kind."},
		{Kind: turn.User, Parts: []v1beta1.MessagePart{wire.Text("What is this?"), file("image", "image/png", "aGk+", ""),
			file("q.pdf", "application/pdf", "", "https://example.org/q.pdf"), wire.Text("Notes.")}},
		{Kind: turn.Reply, Text: "I look."},
		{Kind: turn.ToolCall, Call: "call_1_chat-x", Name: "weather", Input: `{"city": "Rome"}`},
		{Kind: turn.ToolResult, Call: "call_1_chat-x", IsError: true,
			Text: "no answer(a file of type image, which results of calls do not hold)"},
		{Kind: turn.User, Parts: []v1beta1.MessagePart{wire.Text("And now?")}}}
	check.Equal(t, "items", want, got.Items)
	results := got.News().Results
	if len(results) != 1 || !results[0].IsError || results[0].ID != "call_1" {
		t.Errorf("results are %+v", results)
	}
}

func TestUnsupportedRequestIsRejectedNamingTheField(t *testing.T) {
	for body, param := range map[string]string{
		`{"stop_sequences": ["a", "b", "c", "d", "e"]}`: "stop_sequences", `{"tool_choice": {"type": "tool"}}`: "tool_choice",
		`{"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}`: "tool_choice.disable_parallel_tool_use",
		`{"container": "c"}`:                                                          "container",
		`{"mcp_servers": [{"url": "u"}]}`:                                             "mcp_servers",
		`{"output_config": {"format": {"type": "json_schema"}}}`:                      "output_config.format.schema",
		`{"output_config": {"effort": "heroic"}}`:                                     "output_config.effort",
		`{"tools": [{"type": "web_search_20250305", "name": "web_search"}]}`:          "tools[0]",
		`{"messages": [{"role": "narrator", "content": "x"}]}`:                        "messages[0].role",
		`{"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}`:      "messages[0].content[0].tool_use_id",
		`{"messages": [{"role": "user", "content": [{"type": "container_upload"}]}]}`: "messages[0].content[0]",
		`{"messages": [{"role": "user", "content": 7}]}`:                              "messages",
		`{"messages": "x"}`: "messages",
	} {
		_, err := messages.Read([]byte(body))
		no, ok := errors.AsType[*wire.Error](err)
		if !ok || no.Param == nil || *no.Param != param || no.Status != 400 || no.Type != wire.InvalidRequest {
			t.Errorf("%s: %+v", body, err)
		}
	}
}

func TestSettingsOfTheTurnAreRead(t *testing.T) {
	const format = `{"type": "json_schema", "schema": {"type": "object"}}`
	output := &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(`{"type": "object"}`)}}
	for body, want := range map[string]turn.Settings{
		`{"output_config": {"format": ` + format + `}, "stop_sequences": ["END"]}`: {Output: output, Stop: []string{"END"}},
		`{"output_format": ` + format + `, "tool_choice": {"type": "any"}}`: {Output: output,
			ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceRequired}},
		`{"output_config": {"format": null}, "tool_choice": {"type": "tool", "name": "weather"}}`: {
			ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceTool, Tool: "weather"}},
		`{"tool_choice": {"type": "none"}}`: {ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceNone}},
		`{"tool_choice": {"type": "auto"}}`: {},
	} {
		got, err := messages.Read([]byte(body))
		check.OK(t, err)
		check.Equal(t, body, want, got.Settings)
	}
}
