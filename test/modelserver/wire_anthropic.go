// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// anthropicWire is Anthropic messages.
type anthropicWire struct{}

func (anthropicWire) name() Protocol { return Anthropic }

// anthropicBlock is a block of a message's content.
type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (anthropicWire) decode(body []byte) (*request, error) {
	var in struct {
		Model     string          `json:"model"`
		Stream    bool            `json:"stream"`
		MaxTokens int             `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct{ Name string } `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, errors.New("the request body is not valid JSON")
	}
	if in.MaxTokens <= 0 {
		return nil, errors.New("max_tokens: Field required")
	}
	r := &request{protocol: Anthropic, model: in.Model, stream: in.Stream, entries: len(in.Messages)}
	if system, err := content(in.System); err == nil && system != "" {
		r.turns = append(r.turns, turn{kind: turnSystem, text: system})
	}
	previous := ""
	for i, m := range in.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return nil, fmt.Errorf("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case i == 0 && m.Role != "user":
			return nil, errors.New("messages: first message must use the \"user\" role")
		case m.Role == previous && m.Role == "assistant":
			return nil, errors.New("messages: roles must alternate between \"user\" and \"assistant\"")
		}
		previous = m.Role
		if err := r.anthropicMessage(m.Role, m.Content); err != nil {
			return nil, fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	for _, t := range in.Tools {
		r.tools = append(r.tools, t.Name)
	}
	return r, toolNames(r.tools, anthropicToolName)
}

func (r *request) anthropicMessage(role string, raw json.RawMessage) error {
	kind := map[string]turnKind{"user": turnUser, "assistant": turnAssistant}[role]
	var blocks []anthropicBlock
	if json.Unmarshal(raw, &blocks) != nil {
		text, err := content(raw)
		r.turns = append(r.turns, turn{kind: kind, text: text})
		return err
	}
	text, said := strings.Builder{}, len(blocks) == 0
	var calls []turn
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if b.Text == "" {
				return errors.New("text content blocks must be non-empty")
			}
			said = true
			text.WriteString(b.Text)
		case "tool_use":
			calls = append(calls, turn{kind: turnCall, id: b.ID, name: b.Name})
		case "tool_result":
			output, err := content(b.Content)
			if err != nil {
				return err
			}
			r.turns = append(r.turns, turn{kind: turnResult, id: b.ToolUseID, text: output, failed: b.IsError})
		default:
			said = true
		}
	}
	if said {
		r.turns = append(r.turns, turn{kind: kind, text: text.String()})
	}
	r.turns = append(r.turns, calls...)
	return nil
}

var anthropicErrors = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
	http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error", statusOverloaded: "overloaded_error",
}

func (anthropicWire) failure(f *Fault) any {
	message, kind := orElse(f.Message, "Overloaded or broken, as the script says"), orElse(anthropicErrors[f.status()], "api_error")
	if f.Kind == FaultContextTooLong {
		message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", orNumber(f.UsedTokens, 210000), orNumber(f.MaxTokens, 200000))
	}
	return object{"type": "error", "error": object{"type": orElse(f.Type, kind), "message": message}}
}

var anthropicFinish = map[Finish]string{FinishStop: "end_turn", FinishLength: "max_tokens", FinishToolCalls: "tool_use", FinishContentFilter: "refusal"}

func anthropicUsage(u Usage) object {
	return object{
		"input_tokens": u.Input - u.Cached, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0, "output_tokens": u.Output,
	}
}

func (anthropicWire) whole(r *request, p *plan) any {
	content := []object{}
	for i := range p.blocks {
		switch b := &p.blocks[i]; b.kind {
		case textBlock:
			content = append(content, object{"type": "text", "text": b.text})
		case reasoningBlock:
			content = append(content, object{"type": "thinking", "thinking": b.text, "signature": "sig-" + b.id})
		case callBlock:
			content = append(content, object{"type": "tool_use", "id": b.call.ID, "name": b.call.Name, "input": json.RawMessage(b.text)})
		}
	}
	return object{
		"id": newID("msg_"), "type": "message", "role": "assistant", "model": r.model, "content": content,
		"stop_reason": anthropicFinish[p.finish], "stop_sequence": nil, "usage": anthropicUsage(p.usage),
	}
}

func (anthropicWire) stream(r *request, p *plan) streamer {
	return &anthropicStream{request: r, plan: p, index: -1}
}

type anthropicStream struct {
	request *request
	plan    *plan
	index   int
}

func anthropicEvent(kind string, data object) sse {
	data["type"] = kind
	return sse{event: kind, data: data}
}

func (s *anthropicStream) open() []sse {
	usage := anthropicUsage(s.plan.usage)
	usage["output_tokens"] = 1
	return []sse{anthropicEvent("message_start", object{"message": object{
		"id": newID("msg_"), "type": "message", "role": "assistant", "model": s.request.model, "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})}
}

func (s *anthropicStream) startBlock(b *block) []sse {
	s.index++
	begun := object{"type": "text", "text": ""}
	switch b.kind {
	case reasoningBlock:
		begun = object{"type": "thinking", "thinking": "", "signature": ""}
	case callBlock:
		begun = object{"type": "tool_use", "id": b.call.ID, "name": b.call.Name, "input": object{}}
	}
	return []sse{anthropicEvent("content_block_start", object{"index": s.index, "content_block": begun})}
}

func (s *anthropicStream) delta(d object) sse {
	return anthropicEvent("content_block_delta", object{"index": s.index, "delta": d})
}

func (s *anthropicStream) chunk(b *block, _ bool, text string) []sse {
	switch b.kind {
	case reasoningBlock:
		return []sse{s.delta(object{"type": "thinking_delta", "thinking": text})}
	case callBlock:
		return []sse{s.delta(object{"type": "input_json_delta", "partial_json": text})}
	}
	return []sse{s.delta(object{"type": "text_delta", "text": text})}
}

func (s *anthropicStream) endBlock(b *block) []sse {
	stop := anthropicEvent("content_block_stop", object{"index": s.index})
	if b.kind == reasoningBlock {
		return []sse{s.delta(object{"type": "signature_delta", "signature": "sig-" + b.id}), stop}
	}
	return []sse{stop}
}

func (s *anthropicStream) close() []sse {
	return []sse{
		anthropicEvent("message_delta", object{
			"delta": object{"stop_reason": anthropicFinish[s.plan.finish], "stop_sequence": nil},
			"usage": object{"output_tokens": s.plan.usage.Output},
		}),
		anthropicEvent("message_stop", object{}),
	}
}
