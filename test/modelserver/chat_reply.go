// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"time"

	"github.com/openai/openai-go/v3"
)

// chatChunk is an openai.ChatCompletionChunk with fields that can be null or absent, as they are on the wire, and with
// the reasoning of servers that imitate OpenAI.
type chatChunk struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	Created           int64             `json:"created"`
	Model             string            `json:"model"`
	ServiceTier       string            `json:"service_tier"`
	SystemFingerprint string            `json:"system_fingerprint"`
	Choices           []chatChunkChoice `json:"choices"`
	// Usage is null in every chunk but the last if the caller asked for the usage, else it is left out.
	Usage json.RawMessage `json:"usage,omitempty"`
}

type chatChunkChoice struct {
	Index        int       `json:"index"`
	Delta        chatDelta `json:"delta"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

type chatDelta struct {
	Role      string          `json:"role,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Refusal   json.RawMessage `json:"refusal,omitempty"`
	Reasoning *string         `json:"reasoning_content,omitempty"`
	ToolCalls []chatCall      `json:"tool_calls,omitempty"`
}

const chatFingerprint = "fp_scripted"

var null = json.RawMessage("null")

func chatFinish(f Finish) string {
	switch f {
	case FinishLength:
		return "length"
	case FinishToolCalls:
		return "tool_calls"
	case FinishContentFilter:
		return "content_filter"
	default:
		return "stop"
	}
}

func (p *plan) chatUsage() openai.CompletionUsage {
	return openai.CompletionUsage{
		PromptTokens: int64(p.usage.Input), CompletionTokens: int64(p.usage.Output),
		TotalTokens:             int64(p.usage.Input + p.usage.Output),
		PromptTokensDetails:     openai.CompletionUsagePromptTokensDetails{CachedTokens: int64(p.usage.Cached)},
		CompletionTokensDetails: openai.CompletionUsageCompletionTokensDetails{ReasoningTokens: int64(p.usage.Reasoning)},
	}
}

type chatStream struct {
	out   *sse
	plan  *plan
	chunk chatChunk
	usage bool
	calls int
}

func (chatDialect) stream(r *request, p *plan, out *sse) streamer {
	s := &chatStream{out: out, plan: p, usage: r.includeUsage, chunk: chatChunk{
		ID: newID("chatcmpl-"), Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: r.model,
		ServiceTier: "default", SystemFingerprint: chatFingerprint,
	}}
	if s.usage {
		s.chunk.Usage = null
	}
	return s
}

func (s *chatStream) send(d chatDelta, finish *string) {
	s.chunk.Choices = []chatChunkChoice{{Delta: d, FinishReason: finish}}
	s.out.event("", &s.chunk)
}

func (s *chatStream) open() {
	content := json.RawMessage(`""`)
	if len(s.plan.blocks) > 0 && s.plan.blocks[0].kind != textBlock {
		content = null
	}
	s.send(chatDelta{Role: "assistant", Content: content, Refusal: null}, nil)
}

func (s *chatStream) begin(_ int, b *block) {
	if b.kind != callBlock {
		return
	}
	index := s.calls
	s.calls++
	call := chatCall{Index: &index, ID: b.call.ID, Type: "function", Function: chatCallFunction{Name: b.call.Name}}
	s.send(chatDelta{ToolCalls: []chatCall{call}}, nil)
}

func (s *chatStream) delta(_ int, b *block, chunk string) {
	switch b.kind {
	case textBlock:
		s.send(chatDelta{Content: encode(chunk)}, nil)
	case reasoningBlock:
		s.send(chatDelta{Reasoning: &chunk}, nil)
	case callBlock:
		index := s.calls - 1
		s.send(chatDelta{ToolCalls: []chatCall{{Index: &index, Function: chatCallFunction{Arguments: chunk}}}}, nil)
	}
}

func (s *chatStream) end(int, *block) {}

func (s *chatStream) close() {
	finish := s.plan.word(chatFinish)
	s.send(chatDelta{}, &finish)
	if s.usage {
		s.chunk.Choices, s.chunk.Usage = []chatChunkChoice{}, encode(s.plan.chatUsage())
		s.out.event("", &s.chunk)
	}
	s.out.raw("[DONE]")
}

func (s *chatStream) fail(e apiError) { s.out.event("", openAIErrorShape(e, "")) }
