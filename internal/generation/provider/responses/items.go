// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"parley.dev/parley/internal/generation/provider/wire"
)

// item reads an item that begins, or that is whole.
func (r *reply) item(e *event) {
	i := e.Item
	if i == nil {
		return
	}
	call, isCall := callOf(i)
	if _, begun := r.calls[e.OutputIndex]; isCall && (!begun || e.Type != "response.output_item.done") {
		r.calls[e.OutputIndex] = call.ID
		r.parts.BeginCall(call)
	}
	if e.Type != "response.output_item.done" {
		return
	}
	switch {
	case isCall:
		r.parts.Call(call)
		r.result(i, call)
	case i.Type == "message":
		r.message(i, r.streamed[e.OutputIndex])
	case i.Type == "reasoning":
		r.reasoning(i, r.streamed[e.OutputIndex])
	}
}

// callOf is the call that an item is, with the input that it has so far; false: it is none.
func callOf(i *responses.ResponseOutputItemUnion) (wire.Call, bool) {
	switch i.Type {
	case "function_call":
		return wire.Call{ID: cmp.Or(i.CallID, i.ID), Name: i.Name, Input: i.Arguments.OfString}, true
	case "web_search_call":
		return wire.Call{ID: i.ID, Name: wire.WebSearch, Input: i.JSON.Action.Raw(), OfProvider: true}, true
	case "code_interpreter_call":
		input, _ := json.Marshal(map[string]string{"code": i.Code}) // It is a text.
		return wire.Call{ID: i.ID, Name: wire.CodeExecution, Input: string(input), OfProvider: true}, true
	}
	return wire.Call{}, false
}

// result adds what a tool of the provider has found.
func (r *reply) result(i *responses.ResponseOutputItemUnion, call wire.Call) {
	if !call.OfProvider {
		return
	}
	for _, source := range i.Action.Sources {
		r.parts.Source(source.URL, "")
	}
	var lines []string
	for _, output := range i.Outputs {
		lines = append(lines, cmp.Or(output.Logs, output.URL))
	}
	r.parts.Result(call.ID, call.Name, strings.Join(lines, "\n"), nil)
}

// message ends a text. One that has not come in deltas is in the item.
func (r *reply) message(i *responses.ResponseOutputItemUnion, streamed bool) {
	for n := range i.Content {
		content := &i.Content[n]
		if streamed {
			break
		}
		r.refused = r.refused || content.Refusal != ""
		r.parts.Text(i.ID, cmp.Or(content.Refusal, content.Text))
		for a := range content.Annotations {
			r.cite(&content.Annotations[a])
		}
	}
	r.parts.EndText(i.ID)
}

// sealed is a reasoning as it goes back. Without its content the provider would not know it: it stores nothing.
type sealed struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// reasoning ends a reasoning. One that has not come in deltas is in the item.
func (r *reply) reasoning(i *responses.ResponseOutputItemUnion, streamed bool) {
	for n, paragraph := range i.Summary {
		if !streamed {
			r.paragraph(i.ID, int64(n))
			r.parts.Reasoning(i.ID, paragraph.Text)
		}
	}
	if i.EncryptedContent != "" {
		summary := i.JSON.Summary.Raw()
		if len(i.Summary) == 0 {
			summary = "[]"
		}
		// What is marshaled is JSON.
		item, _ := json.Marshal(sealed{i.Type, i.ID, json.RawMessage(summary), i.EncryptedContent})
		r.parts.ReasoningState(i.ID, wire.State{Item: item})
	}
	r.parts.EndReasoning(i.ID)
}
