// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
)

// responsesWire is OpenAI responses.
type responsesWire struct{}

func (responsesWire) name() Protocol { return OpenAIResponses }

func (responsesWire) decode(body []byte) (*request, error) {
	var in struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, errors.New("we could not parse the JSON body of your request")
	}
	r := &request{protocol: OpenAIResponses, model: in.Model, stream: in.Stream}
	if in.Instructions != "" {
		r.turns = append(r.turns, turn{kind: turnSystem, text: in.Instructions})
	}
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		r.entries = 1
		r.turns = append(r.turns, turn{kind: turnUser, text: text})
	} else if err := r.items(in.Input); err != nil {
		return nil, err
	}
	for _, t := range in.Tools {
		if t.Type == "function" {
			r.tools = append(r.tools, t.Name)
		}
	}
	return r, toolNames(r.tools, openAIToolName)
}

func (r *request) items(raw json.RawMessage) error {
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		CallID  string          `json:"call_id"`
		Name    string          `json:"name"`
		Output  json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(raw, &items); err != nil {
		return errors.New("input is neither a string nor a list of items")
	}
	r.entries = len(items)
	for i, item := range items {
		switch item.Type {
		case "", "message":
			text, err := content(item.Content)
			if err != nil {
				return fmt.Errorf("input[%d]: %w", i, err)
			}
			kind, ok := map[string]turnKind{"system": turnSystem, "developer": turnSystem, "user": turnUser, "assistant": turnAssistant}[item.Role]
			if !ok {
				return fmt.Errorf("input[%d]: invalid role %q", i, item.Role)
			}
			r.turns = append(r.turns, turn{kind: kind, text: text})
		case "function_call":
			r.turns = append(r.turns, turn{kind: turnCall, id: item.CallID, name: item.Name})
		case "function_call_output":
			text, err := content(item.Output)
			if err != nil {
				return fmt.Errorf("input[%d]: %w", i, err)
			}
			r.turns = append(r.turns, turn{kind: turnResult, id: item.CallID, text: text})
		}
	}
	return nil
}

func (responsesWire) failure(f *Fault) any {
	body := openAIFailure(f)
	if f.Kind == FaultError {
		inner := body["error"].(object)
		return object{"type": "error", "code": inner["type"], "message": inner["message"], "param": nil}
	}
	return body
}

// item is a finished block as the protocol has it.
func item(b *block) object {
	switch b.kind {
	case reasoningBlock:
		return object{"type": "reasoning", "id": b.id, "summary": []object{{"type": "summary_text", "text": b.text}}, "encrypted_content": "enc-" + b.id}
	case callBlock:
		return object{"type": "function_call", "id": b.id, "call_id": b.call.ID, "name": b.call.Name, "arguments": b.text, "status": "completed"}
	}
	return object{
		"type": "message", "id": b.id, "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": b.text, "annotations": []object{}}},
	}
}

func response(id string, r *request, p *plan, status string, blocks []block) object {
	output := []object{}
	for i := range blocks {
		output = append(output, item(&blocks[i]))
	}
	out := object{"id": id, "object": "response", "created_at": 0, "model": r.model, "status": status, "output": output, "error": nil, "incomplete_details": nil}
	if status == "in_progress" {
		return out
	}
	if p.finish == FinishLength {
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	out["usage"] = object{
		"input_tokens": p.usage.Input, "input_tokens_details": object{"cached_tokens": p.usage.Cached},
		"output_tokens": p.usage.Output, "output_tokens_details": object{"reasoning_tokens": p.usage.Reasoning},
		"total_tokens": p.usage.Input + p.usage.Output,
	}
	return out
}

func (responsesWire) whole(r *request, p *plan) any {
	return response(newID("resp_"), r, p, "completed", p.blocks)
}

func (responsesWire) stream(r *request, p *plan) streamer {
	return &responsesStream{request: r, plan: p, id: newID("resp_"), index: -1}
}

type responsesStream struct {
	request *request
	plan    *plan
	id      string
	index   int
	number  int
}

func (s *responsesStream) event(kind string, data object) sse {
	data["type"], data["sequence_number"] = kind, s.number
	s.number++
	return sse{event: kind, data: data}
}

func (s *responsesStream) open() []sse {
	return []sse{s.event("response.created", object{"response": response(s.id, s.request, s.plan, "in_progress", nil)})}
}

func (s *responsesStream) startBlock(b *block) []sse {
	s.index++
	at := func(more object) object { more["item_id"], more["output_index"] = b.id, s.index; return more }
	begun := item(b)
	switch b.kind {
	case reasoningBlock:
		begun["summary"] = []object{}
		delete(begun, "encrypted_content")
		return []sse{
			s.event("response.output_item.added", object{"output_index": s.index, "item": begun}),
			s.event("response.reasoning_summary_part.added", at(object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}})),
		}
	case callBlock:
		begun["arguments"], begun["status"] = "", "in_progress"
		return []sse{s.event("response.output_item.added", object{"output_index": s.index, "item": begun})}
	}
	begun["content"], begun["status"] = []object{}, "in_progress"
	return []sse{
		s.event("response.output_item.added", object{"output_index": s.index, "item": begun}),
		s.event("response.content_part.added", at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []object{}}})),
	}
}

func (s *responsesStream) chunk(b *block, _ bool, text string) []sse {
	data := object{"item_id": b.id, "output_index": s.index, "delta": text}
	switch b.kind {
	case reasoningBlock:
		data["summary_index"] = 0
		return []sse{s.event("response.reasoning_summary_text.delta", data)}
	case callBlock:
		return []sse{s.event("response.function_call_arguments.delta", data)}
	}
	data["content_index"] = 0
	return []sse{s.event("response.output_text.delta", data)}
}

func (s *responsesStream) endBlock(b *block) []sse {
	data := object{"item_id": b.id, "output_index": s.index}
	var events []sse
	switch b.kind {
	case reasoningBlock:
		data["summary_index"], data["text"] = 0, b.text
		events = append(events, s.event("response.reasoning_summary_text.done", data))
	case callBlock:
		data["arguments"] = b.text
		events = append(events, s.event("response.function_call_arguments.done", data))
	default:
		data["content_index"], data["text"] = 0, b.text
		events = append(events, s.event("response.output_text.done", data))
	}
	return append(events, s.event("response.output_item.done", object{"output_index": s.index, "item": item(b)}))
}

func (s *responsesStream) close() []sse {
	kind := "response.completed"
	if s.plan.finish == FinishLength {
		kind = "response.incomplete"
	}
	return []sse{s.event(kind, object{"response": response(s.id, s.request, s.plan, "completed", s.plan.blocks)})}
}
