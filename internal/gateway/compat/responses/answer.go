// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// idPrefix begins the id of a response; the name of its message follows.
const idPrefix = "resp_"

// ID is the id of the response to a message.
func ID(message string) string { return idPrefix + message }

// MessageOf is the name of the message whose response has an id; false for other ids.
func MessageOf(id string) (message string, ok bool) {
	message, ok = strings.CutPrefix(id, idPrefix)
	return message, ok && turn.IsMessageName(message)
}

// States of responses and items.
const (
	queued     = "queued"
	inProgress = "in_progress"
	completed  = "completed"
	incomplete = "incomplete"
	failed     = "failed"
	cancelled  = "cancelled"
)

// Response is an answer, which may still run.
type Response struct {
	ID           string            `json:"id"`
	Object       string            `json:"object"`
	CreatedAt    int64             `json:"created_at"`
	Status       string            `json:"status"`
	Background   bool              `json:"background"`
	Conversation Conversation      `json:"conversation"`
	Error        *ResponseError    `json:"error"`
	Incomplete   *Reason           `json:"incomplete_details"`
	Instructions *string           `json:"instructions"`
	Metadata     map[string]string `json:"metadata"`
	Model        string            `json:"model"`
	Output       []Item            `json:"output"`
	Parallel     bool              `json:"parallel_tool_calls"`
	Previous     *string           `json:"previous_response_id"`
	Text         Text              `json:"text"`
	ToolChoice   any               `json:"tool_choice"`
	Tools        []any             `json:"tools"`
	Usage        *Usage            `json:"usage"`
}

// Text is how the text of an answer is formatted.
type Text struct {
	Format Format `json:"format"`
}

// Format is text, or JSON that matches a schema.
type Format struct {
	Type   string          `json:"type"`
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Strict bool            `json:"strict,omitempty"`
}

// formatOf is the format of an answer. Chats keep no names of schemas.
func formatOf(output *v1beta1.OutputFormat) Format {
	switch {
	case output == nil:
		return Format{Type: "text"}
	case bytes.Equal(output.Schema.Raw, turn.AnyObject()):
		return Format{Type: "json_object"}
	}
	return Format{Type: "json_schema", Name: "answer", Schema: output.Schema.Raw, Strict: true}
}

// choiceOf is which tools the first reply calls.
func choiceOf(choice *v1beta1.ToolChoice) any {
	switch {
	case choice == nil:
		return "auto"
	case choice.Type == v1beta1.ToolChoiceTool:
		return map[string]string{"type": wire.KindFunction, "name": choice.Tool}
	}
	return strings.ToLower(string(choice.Type))
}

// Conversation is the chat of an answer.
type Conversation struct {
	ID string `json:"id"`
}

// ResponseError is why a response failed.
type ResponseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Reason is why a response is incomplete.
type Reason struct {
	Reason string `json:"reason"`
}

// Item is an item of the output: a message, reasoning, or a call.
type Item struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	Status    string  `json:"status,omitempty"`
	Role      string  `json:"role,omitempty"`
	Content   []Part  `json:"content,omitzero"`
	Summary   []Part  `json:"summary,omitzero"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

// Part is a part of a message, or of reasoning.
type Part struct {
	Type        string  `json:"type"`
	Text        *string `json:"text,omitempty"`
	Refusal     *string `json:"refusal,omitempty"`
	Annotations []any   `json:"annotations,omitzero"`
	Logprobs    []any   `json:"logprobs,omitzero"`
}

// Usage is the usage of an answer.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	InputDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens  int64 `json:"output_tokens"`
	OutputDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

func usageOf(u v1beta1.TokenUsage) *Usage {
	out := &Usage{InputTokens: u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens, OutputTokens: u.OutputTokens}
	out.TotalTokens = out.InputTokens + out.OutputTokens
	out.InputDetails.CachedTokens, out.OutputDetails.ReasoningTokens = u.CacheReadTokens, u.ReasoningTokens
	return out
}

// Of is an answer, which may still run.
func Of(a *wire.Answer) *Response {
	r := &Response{ID: ID(a.Message), Object: "response", CreatedAt: a.Created.Unix(), Status: inProgress,
		Background: a.Background, Conversation: Conversation{a.Chat}, Metadata: a.Metadata, Model: a.Model,
		Output: []Item{}, Parallel: true,
		Text: Text{formatOf(a.Output)}, ToolChoice: choiceOf(a.ToolChoice), Tools: []any{}}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	for i := range a.Blocks {
		r.Output = append(r.Output, itemOf(a, i, &a.Blocks[i], completed))
	}
	switch {
	case a.End != nil:
		r.end(a.End)
	case !a.Begun:
		r.Status = queued
	}
	return r
}

func (r *Response) end(end *turn.End) {
	r.Status, r.Usage = completed, usageOf(end.Usage)
	switch {
	case end.Outcome == turn.Failed:
		e := wire.Failure(end.Error)
		r.Status, r.Error = failed, &ResponseError{Code: *e.Code, Message: e.Message}
	case end.Outcome == turn.Interrupted:
		r.Status, r.Incomplete = cancelled, &Reason{"interrupted"}
	case end.Reply == v1beta1.ReplyMaxTokensReached:
		r.Status, r.Incomplete = incomplete, &Reason{"max_output_tokens"}
	case end.Reply == v1beta1.ReplyRefused:
		r.refuse()
	}
}

// refuse makes a refusal of the last text.
func (r *Response) refuse() {
	for _, item := range slices.Backward(r.Output) {
		if item.Type == "message" {
			for i, part := range item.Content {
				item.Content[i] = Part{Type: "refusal", Refusal: part.Text}
			}
			return
		}
	}
}

// itemOf is a block as an item of the output. One that is in progress is empty.
func itemOf(a *wire.Answer, index int, b *turn.Block, status string) Item {
	begun := status == inProgress
	switch b.Kind {
	case turn.Reasoning:
		it := Item{Type: "reasoning", ID: itemID("rs", a, index), Summary: []Part{}}
		if !begun {
			it.Summary = []Part{summary(b.Text)}
		}
		return it
	case turn.Call:
		it := Item{Type: "function_call", ID: itemID("fc", a, index), Status: status, CallID: turn.CallID(b.ID, a.Chat),
			Name: b.Name, Arguments: new("")}
		if !begun {
			it.Arguments = &b.Text
		}
		return it
	}
	it := Item{Type: "message", ID: itemID("msg", a, index), Status: status, Role: "assistant", Content: []Part{}}
	if !begun {
		it.Content = []Part{outputText(b.Text)}
	}
	return it
}

func itemID(kind string, a *wire.Answer, index int) string {
	return fmt.Sprintf("%s_%s_%d", kind, a.Message, index)
}

func outputText(text string) Part {
	return Part{Type: "output_text", Text: &text, Annotations: []any{}, Logprobs: []any{}}
}

func summary(text string) Part { return Part{Type: "summary_text", Text: &text} }
