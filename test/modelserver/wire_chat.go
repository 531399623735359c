// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// chatWire is OpenAI chat completions.
type chatWire struct{}

func (chatWire) name() Protocol { return OpenAIChat }

func (chatWire) decode(body []byte) (*request, error) {
	var in struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string                `json:"id"`
				Function struct{ Name string } `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct{ Name string } `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, errors.New("we could not parse the JSON body of your request")
	}
	r := &request{protocol: OpenAIChat, model: in.Model, stream: in.Stream, includeUsage: in.StreamOptions.IncludeUsage, entries: len(in.Messages)}
	for i, m := range in.Messages {
		text, err := content(m.Content)
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		switch m.Role {
		case "system", "developer":
			r.turns = append(r.turns, turn{kind: turnSystem, text: text})
		case "user":
			r.turns = append(r.turns, turn{kind: turnUser, text: text})
		case "assistant":
			r.turns = append(r.turns, turn{kind: turnAssistant, text: text})
			for _, c := range m.ToolCalls {
				r.turns = append(r.turns, turn{kind: turnCall, id: c.ID, name: c.Function.Name})
			}
		case "tool":
			r.turns = append(r.turns, turn{kind: turnResult, id: m.ToolCallID, text: text})
		default:
			return nil, fmt.Errorf("messages[%d]: invalid role %q", i, m.Role)
		}
	}
	for _, t := range in.Tools {
		r.tools = append(r.tools, t.Function.Name)
	}
	return r, toolNames(r.tools, openAIToolName)
}

func (chatWire) failure(f *Fault) any { return openAIFailure(f) }

// openAIFailure is the body of an error of OpenAI's protocols.
func openAIFailure(f *Fault) object {
	kind, code := "server_error", any(nil)
	switch status := f.status(); {
	case f.Kind == FaultContextTooLong:
		used, most := orNumber(f.UsedTokens, 210000), orNumber(f.MaxTokens, 200000)
		return object{"error": object{
			"message": fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", most, used),
			"type":    "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
		}}
	case status == http.StatusUnauthorized:
		kind, code = "invalid_request_error", "invalid_api_key"
	case status == http.StatusTooManyRequests:
		kind, code = "requests", "rate_limit_exceeded"
	case status == http.StatusNotFound:
		kind, code = "invalid_request_error", "model_not_found"
	case status < http.StatusInternalServerError:
		kind = "invalid_request_error"
	}
	if f.Code != "" {
		code = f.Code
	}
	return object{"error": object{
		"message": orElse(f.Message, "The server had an error while processing your request"), "type": orElse(f.Type, kind), "param": nil, "code": code,
	}}
}

func orNumber(n, fallback int) int {
	if n != 0 {
		return n
	}
	return fallback
}

var chatFinish = map[Finish]string{FinishStop: "stop", FinishLength: "length", FinishToolCalls: "tool_calls", FinishContentFilter: "content_filter"}

func chatUsage(u Usage) object {
	return object{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     object{"cached_tokens": u.Cached},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}

func (chatWire) whole(r *request, p *plan) any {
	message := object{"role": "assistant", "content": nil}
	var calls []object
	for _, b := range p.blocks {
		switch b.kind {
		case textBlock:
			previous, _ := message["content"].(string)
			message["content"] = previous + b.text
		case reasoningBlock:
			message["reasoning_content"] = b.text
		case callBlock:
			calls = append(calls, object{"id": b.call.ID, "type": "function", "function": object{"name": b.call.Name, "arguments": b.text}})
		}
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return object{
		"id": newID("chatcmpl-"), "object": "chat.completion", "created": 0, "model": r.model,
		"choices": []object{{"index": 0, "message": message, "finish_reason": chatFinish[p.finish]}}, "usage": chatUsage(p.usage),
	}
}

func (chatWire) stream(r *request, p *plan) streamer {
	return &chatStream{request: r, plan: p, id: newID("chatcmpl-"), call: -1}
}

type chatStream struct {
	request *request
	plan    *plan
	id      string
	call    int
}

func (s *chatStream) event(choices []object, usage any) sse {
	return sse{data: object{
		"id": s.id, "object": "chat.completion.chunk", "created": 0, "model": s.request.model, "choices": choices, "usage": usage,
	}}
}

func (s *chatStream) delta(d object, finish any) []sse {
	return []sse{s.event([]object{{"index": 0, "delta": d, "finish_reason": finish}}, nil)}
}

func (s *chatStream) open() []sse { return s.delta(object{"role": "assistant", "content": ""}, nil) }

func (s *chatStream) startBlock(b *block) []sse {
	if b.kind == callBlock {
		s.call++
	}
	return nil
}

func (s *chatStream) chunk(b *block, first bool, text string) []sse {
	switch b.kind {
	case reasoningBlock:
		return s.delta(object{"reasoning_content": text}, nil)
	case callBlock:
		function := object{"arguments": text}
		call := object{"index": s.call, "function": function}
		if first {
			function["name"] = b.call.Name
			if !b.call.OmitID {
				call["id"], call["type"] = b.call.ID, "function"
			}
		}
		return s.delta(object{"tool_calls": []object{call}}, nil)
	}
	return s.delta(object{"content": text}, nil)
}

func (s *chatStream) endBlock(*block) []sse { return nil }

func (s *chatStream) close() []sse {
	events := s.delta(object{}, chatFinish[s.plan.finish])
	if s.request.includeUsage {
		events = append(events, s.event([]object{}, chatUsage(s.plan.usage)))
	}
	return append(events, sse{data: "[DONE]"})
}
