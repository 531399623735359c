// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// idPrefix begins the id of an answer; the name of its message follows.
const idPrefix = "chatcmpl-"

// Completion is an answer that is not streamed.
type Completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

// Choice is the one answer.
type Choice struct {
	Index        int       `json:"index"`
	Message      Message   `json:"message"`
	FinishReason string    `json:"finish_reason"`
	Logprobs     *struct{} `json:"logprobs"`
}

// Message of the model.
type Message struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	Refusal          *string    `json:"refusal"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
}

// ToolCall is a call that the client runs.
type ToolCall struct {
	// Index of the call, in chunks only.
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function Function `json:"function"`
}

// Function is the function of a call.
type Function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// Usage is the usage of an answer.
type Usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func usageOf(u v1beta1.TokenUsage) *Usage {
	out := &Usage{PromptTokens: u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens, CompletionTokens: u.OutputTokens}
	out.TotalTokens = out.PromptTokens + out.CompletionTokens
	out.PromptDetails.CachedTokens = u.CacheReadTokens
	out.CompletionDetails.ReasoningTokens = u.ReasoningTokens
	return out
}

// between stands between the texts of two steps of an answer.
const between = "\n\n"

// Of is an answer that has ended.
func Of(a *wire.Answer) *Completion {
	m := Message{Role: "assistant"}
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == turn.Call {
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: turn.CallID(b.ID, a.Chat), Type: "function",
				Function: Function{Name: b.Name, Arguments: b.Text}})
		}
	}
	m.ReasoningContent = textOf(a.Blocks, turn.Reasoning)
	switch content := textOf(a.Blocks, turn.Text); {
	case a.End.Reply == v1beta1.ReplyRefused:
		m.Refusal = &content
	case content != "" || len(m.ToolCalls) == 0:
		m.Content = &content
	}
	return &Completion{ID: idPrefix + a.Message, Object: "chat.completion", Created: a.Created.Unix(), Model: a.Model,
		Choices: []Choice{{Message: m, FinishReason: finish(a.End)}}, Usage: usageOf(a.End.Usage)}
}

// textOf is the text of the blocks of a kind.
func textOf(blocks []turn.Block, kind turn.BlockKind) string {
	var texts []string
	for i := range blocks {
		if blocks[i].Kind == kind {
			texts = append(texts, blocks[i].Text)
		}
	}
	return strings.Join(texts, between)
}

// finish is why an answer ended, in the protocol's terms.
func finish(end *turn.End) string {
	switch {
	case end.Outcome == turn.RequiresAction:
		return "tool_calls"
	case end.Reply == v1beta1.ReplyMaxTokensReached:
		return "length"
	}
	return "stop"
}
