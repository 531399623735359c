// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package claude

import "encoding/json"

// object is a JSON object.
type object = map[string]any

// Events implements intercept.Interceptor: the blocks of the message, each with one delta.
func (i *interceptor) Events(document []byte) [][]byte {
	var message struct {
		Content    []object        `json:"content"`
		StopReason string          `json:"stop_reason"`
		Usage      json.RawMessage `json:"usage"`
	}
	start := object{}
	if json.Unmarshal(document, &message) != nil || message.StopReason == "" || json.Unmarshal(document, &start) != nil {
		return [][]byte{document}
	}
	var events [][]byte
	add := func(kind string, event object) {
		event["type"] = kind
		if encoded, err := json.Marshal(event); err == nil {
			events = append(events, encoded)
		}
	}
	start["content"], start["stop_reason"] = []any{}, nil
	add("message_start", object{"message": start})
	for n, block := range message.Content {
		deltas := deltasOf(block)
		add("content_block_start", object{"index": n, "content_block": block})
		for _, delta := range deltas {
			add("content_block_delta", object{"index": n, "delta": delta})
		}
		add("content_block_stop", object{"index": n})
	}
	add("message_delta", object{"delta": object{"stop_reason": message.StopReason}, "usage": message.Usage})
	add("message_stop", object{})
	return events
}

// deltasOf takes out of a block what comes as deltas.
func deltasOf(block object) []object {
	take := func(field string, instead any) any {
		value := block[field]
		block[field] = instead
		return value
	}
	switch block["type"] {
	case "text":
		return []object{{"type": "text_delta", "text": take("text", "")}}
	case "thinking":
		return []object{{"type": "thinking_delta", "thinking": take("thinking", "")},
			{"type": "signature_delta", "signature": take("signature", "")}}
	case "tool_use", "server_tool_use":
		input, err := json.Marshal(take("input", object{}))
		if err != nil {
			return nil
		}
		return []object{{"type": "input_json_delta", "partial_json": string(input)}}
	}
	return nil
}
