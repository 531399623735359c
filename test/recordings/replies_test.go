// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package recordings_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// reply is what a provider's reply says, in no protocol's shape.
type reply struct {
	Text, Reasoning string
	Calls           []callSaid
	Sources         []string
	Signatures      []string
	Input, Output   int64
	Finish          string
	// Ended is whether the reply says that it is whole.
	Ended bool
}

type callSaid struct{ ID, Name, Args string }

type object = map[string]any

// at is what a path of names and indexes leads to; nil if nothing.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			in, _ := value.(object)
			value = in[step]
		case int:
			in, _ := value.([]any)
			if step >= len(in) {
				return nil
			}
			value = in[step]
		}
	}
	return value
}

func text(value any, path ...any) string {
	s, _ := at(value, path...).(string)
	return s
}

func list(value any, path ...any) []any {
	l, _ := at(value, path...).([]any)
	return l
}

func count(value any, path ...any) int64 {
	n, _ := at(value, path...).(float64)
	return int64(n)
}

// events are the whole events of a stream: server-sent ones, or Amazon's frames.
func events(kind, body string) (all []object) {
	if strings.HasPrefix(kind, "application/vnd.amazon") {
		return frames([]byte(body))
	}
	for {
		line, rest, whole := strings.Cut(body, "\n")
		data, ok := strings.CutPrefix(line, "data:")
		event := object{}
		if ok && json.Unmarshal([]byte(data), &event) == nil {
			all = append(all, event)
		}
		if !whole {
			return all
		}
		body = rest
	}
}

// frames are the events in Amazon's framing.
func frames(body []byte) (all []object) {
	var decoder eventstream.Decoder
	for from := bytes.NewReader(body); ; {
		message, err := decoder.Decode(from, nil)
		if err != nil {
			return all
		}
		var outer struct{ Bytes []byte }
		event := object{}
		if json.Unmarshal(message.Payload, &outer) == nil && json.Unmarshal(outer.Bytes, &event) == nil {
			all = append(all, event)
		}
	}
}

// read reads a reply of a protocol.
func read(protocol, kind, body string) reply {
	all := events(kind, body)
	switch protocol {
	case "anthropic":
		return readAnthropic(all)
	case "gemini":
		return readGemini(all)
	case "responses":
		return readResponses(all)
	}
	return readChat(all)
}

func readChat(all []object) (r reply) {
	at1 := map[int64]int{}
	for _, event := range all {
		delta := at(event, "choices", 0, "delta")
		r.Text += text(delta, "content")
		r.chatReasoning(delta)
		for _, piece := range list(delta, "tool_calls") {
			index := count(piece, "index")
			if _, ok := at1[index]; !ok {
				at1[index] = len(r.Calls)
				r.Calls = append(r.Calls, callSaid{ID: text(piece, "id"), Name: text(piece, "function", "name")})
			}
			r.Calls[at1[index]].Args += text(piece, "function", "arguments")
		}
		for _, note := range list(delta, "annotations") {
			r.Sources = append(r.Sources, text(note, "url_citation", "url"))
		}
		if finish := text(event, "choices", 0, "finish_reason"); finish != "" {
			r.Finish, r.Ended = finish, true
		}
		if usage := at(event, "usage"); usage != nil {
			prompt, completion, reasoning := count(usage, "prompt_tokens"), count(usage, "completion_tokens"),
				count(usage, "completion_tokens_details", "reasoning_tokens")
			if count(usage, "total_tokens") == prompt+completion+reasoning || reasoning > completion {
				completion += reasoning
			}
			r.Input, r.Output = prompt, completion
		}
	}
	return r
}

func (r *reply) chatReasoning(delta any) {
	if said := text(delta, "reasoning_content"); said != "" {
		r.Reasoning += said
	} else {
		r.Reasoning += text(delta, "reasoning")
	}
	for _, detail := range list(delta, "reasoning_details") {
		for _, name := range []string{"signature", "data"} {
			if sealed := text(detail, name); sealed != "" {
				r.Signatures = append(r.Signatures, sealed)
			}
		}
	}
}

func readAnthropic(all []object) (r reply) {
	calls := map[int64]*callSaid{}
	var order []int64
	for _, event := range all {
		index := count(event, "index")
		switch text(event, "type") {
		case "message_start":
			r.Input += count(event, "message", "usage", "input_tokens") + count(event, "message", "usage",
				"cache_read_input_tokens") + count(event, "message", "usage", "cache_creation_input_tokens")
		case "content_block_start":
			block := at(event, "content_block")
			switch text(block, "type") {
			case "tool_use", "server_tool_use":
				calls[index] = &callSaid{ID: text(block, "id"), Name: text(block, "name")}
				order = append(order, index)
			case "web_search_tool_result":
				for _, found := range list(block, "content") {
					r.Sources = append(r.Sources, text(found, "url"))
				}
			}
		case "content_block_delta":
			delta := at(event, "delta")
			r.Text += text(delta, "text")
			r.Reasoning += text(delta, "thinking")
			if signature := text(delta, "signature"); signature != "" {
				r.Signatures = append(r.Signatures, signature)
			}
			if calls[index] != nil {
				calls[index].Args += text(delta, "partial_json")
			}
			if cited := text(delta, "citation", "url"); cited != "" {
				r.Sources = append(r.Sources, cited)
			}
		case "message_delta":
			r.Output, r.Finish = count(event, "usage", "output_tokens"), text(event, "delta", "stop_reason")
			r.Ended = r.Finish != ""
			if n := count(event, "usage", "input_tokens"); n > 0 {
				r.Input = n + count(event, "usage", "cache_read_input_tokens") +
					count(event, "usage", "cache_creation_input_tokens")
			}
		}
	}
	for _, index := range order {
		r.Calls = append(r.Calls, *calls[index])
	}
	return r
}

func readGemini(all []object) (r reply) {
	for _, event := range all {
		for _, part := range list(event, "candidates", 0, "content", "parts") {
			if signature := text(part, "thoughtSignature"); signature != "" {
				r.Signatures = append(r.Signatures, signature)
			}
			thought, _ := at(part, "thought").(bool)
			switch call := at(part, "functionCall"); {
			case call != nil:
				args, _ := json.Marshal(at(call, "args"))
				r.Calls = append(r.Calls, callSaid{text(call, "id"), text(call, "name"), string(args)})
			case thought:
				r.Reasoning += text(part, "text")
			default:
				r.Text += text(part, "text")
			}
		}
		if finish := text(event, "candidates", 0, "finishReason"); finish != "" {
			r.Finish, r.Ended = finish, true
		}
		if usage := at(event, "usageMetadata"); usage != nil {
			r.Input = count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount")
			r.Output = count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount")
		}
	}
	return r
}

func readResponses(all []object) (r reply) {
	for _, event := range all {
		switch item := at(event, "item"); text(event, "type") {
		case "response.output_text.delta":
			r.Text += text(event, "delta")
		case "response.reasoning_summary_text.delta":
			r.Reasoning += text(event, "delta")
		case "response.output_text.annotation.added":
			r.Sources = append(r.Sources, text(event, "annotation", "url"))
		case "response.output_item.done":
			switch text(item, "type") {
			case "function_call":
				r.Calls = append(r.Calls, callSaid{text(item, "call_id"), text(item, "name"), text(item, "arguments")})
			case "web_search_call":
				action, _ := json.Marshal(at(item, "action"))
				r.Calls = append(r.Calls, callSaid{text(item, "id"), "web_search", string(action)})
			case "reasoning":
				if sealed := text(item, "encrypted_content"); sealed != "" {
					r.Signatures = append(r.Signatures, sealed)
				}
			}
		case "response.completed", "response.incomplete":
			r.Ended, r.Finish = true, text(event, "response", "status")
			r.Input, r.Output = count(event, "response", "usage", "input_tokens"),
				count(event, "response", "usage", "output_tokens")
		}
	}
	return r
}

// finishes are what the protocols' reasons to end are called; a reply with calls ends for them.
var finishes = map[string]string{
	"stop": "stop", "tool_calls": "tool-calls", "length": "length", "end_turn": "stop", "tool_use": "tool-calls",
	"max_tokens": "length",
	"STOP":       "stop", "MAX_TOKENS": "length", "completed": "stop", "incomplete": "length",
}

// outline is the reply in comparable lines.
func (r reply) outline(ownTools func(name string) bool) string {
	finish := finishes[r.Finish]
	var lines []string
	for _, call := range r.Calls {
		if !ownTools(call.Name) {
			finish = "tool-calls"
		}
		lines = append(lines, fmt.Sprintf("call %s %s %s", call.ID, call.Name, compact(call.Args)))
	}
	slices.Sort(r.Signatures)
	slices.Sort(r.Sources)
	lines = append(lines, "text "+r.Text, "reasoning "+strings.ReplaceAll(r.Reasoning, "\n", ""),
		fmt.Sprint("sources ", slices.Compact(r.Sources)),
		fmt.Sprint("signatures ", slices.Compact(r.Signatures)), fmt.Sprintf("input %d output %d", r.Input, r.Output),
		"finish "+finish)
	return strings.Join(lines, "\n")
}

// compact is JSON with its keys in order.
func compact(raw string) string {
	var value any
	if raw == "" || json.Unmarshal([]byte(raw), &value) != nil {
		return "{}" + raw
	}
	out, _ := json.Marshal(value)
	return string(out)
}
