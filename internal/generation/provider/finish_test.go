// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// speakers are a configuration that speaks each protocol.
var speakers = map[finish.Protocol]string{
	finish.ChatCompletions: "openai-compatible", finish.Responses: "openai responses", finish.Messages: "anthropic",
	finish.Gemini: "google",
}

// replyOf are the events of a reply with a text, or a call, that ends with the reason.
func replyOf(p finish.Protocol, content, reason string) []string {
	quoted, _ := json.Marshal(reason)
	switch p {
	case finish.Responses:
		return responsesReply(content, reason)
	case finish.Messages:
		return claudeReply(content, string(quoted))
	case finish.Gemini:
		part := map[string]string{"text": `{"text":"Hi"}`, "call": `{"functionCall":{"name":"f","args":{"x":1}}}`}[content]
		return []string{fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":%s}],`+
			`"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}}`, part, quoted)}
	}
	delta := map[string]string{"": "{}", "text": `{"content":"Hi"}`,
		"call":    `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`,
		"refusal": `{"refusal":"I will not"}`}[content]
	events := []string{providertest.Chunk(delta, "null")}
	if reason != "" {
		events = append(events, providertest.Chunk("{}", string(quoted)))
	}
	return append(events, "[DONE]")
}

func claudeReply(content, reason string) []string {
	events := []string{claudeStart}
	switch content {
	case "text":
		events = append(events, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`, claudeStop("0"))
	case "call":
		events = append(append(events, claudeCall("0", "a", `{"x"`, `:1}`)...), claudeStop("0"))
	case "reasoning":
		events = append(events, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`, claudeStop("0"))
	}
	return append(events, `{"type":"message_delta","delta":{"stop_reason":`+reason+`},"usage":{"output_tokens":2}}`, claudeEnd)
}

func responsesReply(content, reason string) []string {
	events := []string{`{"type":"response.created","response":{"id":"r","object":"response","output":[]}}`}
	switch content {
	case "text":
		events = append(events, `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"Hi"}`)
	case "refusal":
		events = append(events,
			`{"type":"response.refusal.delta","item_id":"m","output_index":0,"content_index":0,"delta":"I will not"}`)
	}
	name, status := "completed", reason
	details := "null"
	if reason != "completed" && reason != "cancelled" {
		name, status, details = "incomplete", "incomplete", `{"reason":"`+reason+`"}`
	}
	return append(events, fmt.Sprintf(`{"type":"response.%s","response":{"id":"r","object":"response","status":"%s",`+
		`"incomplete_details":%s,"output":[],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}`,
		name, status, details))
}

// askServer asks a server of the protocol, over HTTP, that answers with these events.
func askServer(t *testing.T, p finish.Protocol, events []string) (collect.Step, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, providertest.Events(events...)[0].Body)
	}))
	defer server.Close()
	spec := providertest.Specs[speakers[p]]
	spec.BaseURL = server.URL
	return providertest.Ask(t, spec, http.DefaultTransport)
}

func TestFinishReasonsOverHTTP(t *testing.T) {
	rows := finish.Table
	for p := range speakers {
		rows = append(rows, finish.Row{Protocol: p, Reasons: []string{"something_new"}, Outcome: v1beta1.ReplyFailed})
	}
	for _, row := range rows {
		for _, reason := range row.Reasons {
			t.Run(string(row.Protocol)+"/"+reason, func(t *testing.T) { testFinishReason(t, row.Protocol, reason, row.Outcome) })
		}
	}
}

func testFinishReason(t *testing.T, protocol finish.Protocol, reason string, outcome v1beta1.ReplyOutcome) {
	content := "text"
	if outcome == v1beta1.ReplyToolCalls {
		content = "call"
	}
	got, err := askServer(t, protocol, replyOf(protocol, content, reason))
	failure, fails := map[v1beta1.ReplyOutcome]v1beta1.ErrorReason{
		v1beta1.ReplyFiltered: v1beta1.ErrorContentFiltered, v1beta1.ReplyFailed: v1beta1.ErrorReplyFailed,
	}[outcome]
	counted := got.Usage.OutputTokens > 0 || protocol == finish.ChatCompletions
	check.Equal(t, "outcome, reason, counted, failed", []any{outcome, reason, true, fails},
		[]any{got.ReplyOutcome, got.FinishReason, counted, err != nil})
	if fails {
		spec := providertest.Specs[speakers[protocol]]
		e := fault.Classify(err, fault.Subject{Spec: &spec})
		check.Equal(t, "reason, retryable", []any{failure, failure == v1beta1.ErrorReplyFailed},
			[]any{e.Reason, e.Retryable})
	}
}

// endOf is how a reply ended that is an error.
func endOf(err error) string {
	if ended, ok := errors.AsType[*finish.Error](err); ok {
		return strings.TrimSpace(string(ended.Outcome) + " " + ended.Reason)
	}
	return fmt.Sprint(err)
}

func TestRepliesThatAnswerNothingAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		protocol finish.Protocol
		events   []string
	}{
		"chat completions": {finish.ChatCompletions, replyOf(finish.ChatCompletions, "", "stop")},
		"blank text": {finish.ChatCompletions,
			[]string{providertest.Chunk(`{"content":" \n"}`, "null"), providertest.Chunk("{}", `"stop"`), "[DONE]"}},
		"calls that are none": {finish.ChatCompletions, replyOf(finish.ChatCompletions, "", "tool_calls")},
		"responses":           {finish.Responses, responsesReply("", "completed")},
		"messages":            {finish.Messages, claudeReply("", `"end_turn"`)},
		"reasoning alone":     {finish.Messages, claudeReply("reasoning", `"end_turn"`)},
		"gemini":              {finish.Gemini, []string{`{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := askServer(t, c.protocol, c.events)
			check.Contains(t, endOf(err), string(v1beta1.ReplyEmpty))
		})
	}
}

func TestRefusalsAreText(t *testing.T) {
	for _, p := range []finish.Protocol{finish.ChatCompletions, finish.Responses} {
		reason := map[finish.Protocol]string{finish.ChatCompletions: "stop", finish.Responses: "completed"}[p]
		got, err := askServer(t, p, replyOf(p, "refusal", reason))
		check.Equal(t, string(p), []any{nil, v1beta1.ReplyRefused, 1, "I will not"},
			[]any{err, got.ReplyOutcome, len(got.Parts), *got.Parts[0].Text})
	}
}

func TestGeminiBlocksAPrompt(t *testing.T) {
	_, err := askServer(t, finish.Gemini, []string{`{"promptFeedback":{"blockReason":"OTHER"},` +
		`"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}`})
	check.Equal(t, "the end", "Filtered OTHER", endOf(err))
}

func TestClaudeEndsWithoutMessageStop(t *testing.T) {
	events := claudeReply("text", `"end_turn"`)
	got, err := askServer(t, finish.Messages, events[:len(events)-1])
	check.Equal(t, "error, reply outcome, output tokens", []any{nil, v1beta1.ReplyComplete, 2},
		[]any{err, got.ReplyOutcome, got.Usage.OutputTokens})
}

func TestBedrockSaysWhyItStops(t *testing.T) {
	for reason, want := range map[string]v1beta1.ReplyOutcome{
		"end_turn": v1beta1.ReplyComplete, "something_new": v1beta1.ReplyFailed, "refusal": v1beta1.ReplyFiltered,
	} {
		spec := providertest.Specs["bedrock"]
		got, _ := providertest.Ask(t, spec, bedrock(claudeReply("text", `"`+reason+`"`)))
		check.Equal(t, reason, []any{want, reason}, []any{got.ReplyOutcome, got.FinishReason})
	}
}

// bedrock answers with these events of Anthropic's protocol, as messages of an AWS event stream.
type bedrock []string

func (b bedrock) RoundTrip(r *http.Request) (*http.Response, error) {
	body, to := io.Pipe()
	go func() {
		encoder := eventstream.NewEncoder()
		for _, event := range b {
			payload, _ := json.Marshal(map[string]any{"bytes": []byte(event)})
			message := eventstream.Message{Payload: payload}
			message.Headers.Set(eventstreamapi.MessageTypeHeader, eventstream.StringValue(eventstreamapi.EventMessageType))
			message.Headers.Set(eventstreamapi.EventTypeHeader, eventstream.StringValue("chunk"))
			if encoder.Encode(to, message) != nil {
				return
			}
		}
		_ = to.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: body,
		Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}}, nil
}
