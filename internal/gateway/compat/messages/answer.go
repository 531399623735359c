// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"encoding/json"
	"net/http"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// idPrefix begins the id of an answer; the name of the message that it answers follows.
const idPrefix = "msg_"

// Message is an answer.
type Message struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        Usage   `json:"usage"`
}

// Text is a block of text.
type Text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Thinking is a block of reasoning. Its signature is empty: chats keep the provider's.
type Thinking struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// ToolUse is a call of one of the client's tools.
type ToolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// Usage is the usage of an answer.
type Usage struct {
	InputTokens         int64 `json:"input_tokens"`
	OutputTokens        int64 `json:"output_tokens"`
	CacheCreationTokens int64 `json:"cache_creation_input_tokens"`
	CacheReadTokens     int64 `json:"cache_read_input_tokens"`
}

func usageOf(u v1beta1.TokenUsage) Usage {
	return Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheCreationTokens: u.CacheWriteTokens,
		CacheReadTokens: u.CacheReadTokens}
}

// Of is an answer that has ended.
func Of(a *wire.Answer) *Message {
	m := begun(a)
	for i := range a.Blocks {
		m.Content = append(m.Content, blockOf(a, &a.Blocks[i], a.Blocks[i].Text))
	}
	m.StopReason, m.Usage = new(stopReason(a.End)), usageOf(a.End.Usage)
	return m
}

// begun is an answer without content.
func begun(a *wire.Answer) *Message {
	return &Message{ID: idPrefix + a.Message, Type: "message", Role: "assistant", Model: a.Model, Content: []any{}}
}

// blockOf is a block with a text, or with the arguments of a call.
func blockOf(a *wire.Answer, b *turn.Block, text string) any {
	switch b.Kind {
	case turn.Reasoning:
		return Thinking{Type: "thinking", Thinking: text}
	case turn.Call:
		input := json.RawMessage(text)
		if !json.Valid(input) {
			input = json.RawMessage("{}")
		}
		return ToolUse{Type: "tool_use", ID: turn.CallID(b.ID, a.Chat), Name: b.Name, Input: input}
	}
	return Text{Type: "text", Text: text}
}

// stopReason is why an answer has ended. An interrupted one has ended its turn.
func stopReason(end *turn.End) string {
	switch {
	case end.Outcome == turn.RequiresAction:
		return "tool_use"
	case end.Reply == v1beta1.ReplyMaxTokensReached:
		return "max_tokens"
	case end.Reply == v1beta1.ReplyRefused:
		return "refusal"
	}
	return "end_turn"
}

// Error is a refusal in Anthropic's form.
type Error struct {
	Type  string `json:"type"`
	Error detail `json:"error"`
}

type detail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Refusal is a refusal in Anthropic's form, as the body of an answer.
func Refusal(e *wire.Error) Error { return Error{Type: "error", Error: errorOf(e)} }

// types of errors that have names in Anthropic's protocol, by the status.
var types = map[int]string{
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusServiceUnavailable: "overloaded_error", http.StatusGatewayTimeout: "timeout_error",
}

func errorOf(e *wire.Error) detail {
	kind := types[e.Status]
	switch {
	case kind != "":
	case e.Status >= http.StatusInternalServerError:
		kind = "api_error"
	default:
		kind = e.Type
	}
	return detail{Type: kind, Message: e.Message}
}
