// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"encoding/json"
)

// wholeItem is an item of a response that came as a whole.
type wholeItem struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Content []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

// Events implements intercept.Interceptor: the items of the response, and the response.
func (i *interceptor) Events(document []byte) [][]byte {
	var response struct {
		Status string            `json:"status"`
		Output []json.RawMessage `json:"output"`
	}
	if json.Unmarshal(document, &response) != nil || response.Status == "" {
		return [][]byte{document}
	}
	var events [][]byte
	add := func(event map[string]any) {
		if encoded, err := json.Marshal(event); err == nil {
			events = append(events, encoded)
		}
	}
	for index, raw := range response.Output {
		add(map[string]any{"type": "response.output_item.added", "output_index": index, "item": raw})
		for _, delta := range deltasOf(raw) {
			delta["output_index"] = index
			add(delta)
		}
		add(map[string]any{"type": "response.output_item.done", "output_index": index, "item": raw})
	}
	add(map[string]any{"type": "response." + response.Status, "response": json.RawMessage(document)})
	return events
}

// deltasOf are the events that bring the texts of an item.
func deltasOf(raw json.RawMessage) (deltas []map[string]any) {
	var item wholeItem
	if json.Unmarshal(raw, &item) != nil {
		return nil
	}
	for n, part := range item.Content {
		kind := "response.output_text.delta"
		if part.Refusal != "" {
			kind = "response.refusal.delta"
		}
		if item.Type == "message" {
			deltas = append(deltas, map[string]any{"type": kind, "item_id": item.ID, "content_index": n,
				"delta": cmp.Or(part.Refusal, part.Text)})
		}
	}
	for n, paragraph := range item.Summary {
		deltas = append(deltas, map[string]any{"type": "response.reasoning_summary_part.added", "item_id": item.ID,
			"summary_index": n},
			map[string]any{"type": "response.reasoning_summary_text.delta", "item_id": item.ID, "summary_index": n,
				"delta": paragraph.Text})
	}
	return deltas
}
