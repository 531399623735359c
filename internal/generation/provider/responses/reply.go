// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"encoding/json"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3/responses"

	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/wire"
)

// reply reads one reply. Items are distinguished by their position in it.
type reply struct {
	parts *wire.Parts
	// calls are the ids of the calls that have started.
	calls map[int64]string
	// streamed are the items whose text has come in deltas.
	streamed map[int64]bool
	// done are the ids of the items that have come whole.
	done    map[string]bool
	refused bool
	// last is the response as it was at the end; nil: it has not ended.
	last *response
}

// event has the fields of all events. The SDK's own type for that takes fifteen times as long to decode.
type event struct {
	Type         string                                       `json:"type"`
	ItemID       string                                       `json:"item_id"`
	OutputIndex  int64                                        `json:"output_index"`
	SummaryIndex int64                                        `json:"summary_index"`
	Delta        string                                       `json:"delta"`
	Item         *responses.ResponseOutputItemUnion           `json:"item"`
	Annotation   *responses.ResponseOutputTextAnnotationUnion `json:"annotation"`
	Response     response                                     `json:"response"`
	Error        json.RawMessage                              `json:"error"`
	// Code and Message are of an error that stands in no field of its own.
	Code    json.RawMessage `json:"code"`
	Message json.RawMessage `json:"message"`
}

// response is what counts of a response at its end.
type response struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage  *responses.ResponseUsage `json:"usage"`
	Output []json.RawMessage        `json:"output"`
	Error  json.RawMessage          `json:"error"`
}

// itemDone is the type of an event that has a whole item.
const itemDone = "response.output_item.done"

func (r *reply) Event(data []byte) (ended bool, err error) {
	var e event
	_ = json.Unmarshal(data, &e) // What does not fit stays empty.
	switch e.Type {
	case "response.output_item.added", itemDone:
		if e.Item != nil {
			r.item(&e)
		}
	case "response.output_text.annotation.added":
		if e.Annotation != nil {
			r.cite(e.Annotation)
		}
	case "response.completed", "response.incomplete", "response.cancelled", "response.failed":
		if wire.IsError(e.Response.Error) {
			return true, failure(e.Response.Error)
		}
		e.Response.Status = cmp.Or(e.Response.Status, strings.TrimPrefix(e.Type, "response."))
		r.last = &e.Response
		r.rest()
		return true, nil
	case "error":
		return true, e.failure(data)
	default:
		r.delta(&e)
	}
	return false, nil
}

// rest reads the items that only the response at its end has whole. What counts are their ids, since some servers have
// no indexes.
func (r *reply) rest() {
	if len(r.done) >= len(r.last.Output) {
		return
	}
	for index, raw := range r.last.Output {
		var i responses.ResponseOutputItemUnion
		if json.Unmarshal(raw, &i) == nil && !r.done[i.ID] {
			r.item(&event{Type: itemDone, OutputIndex: int64(index), Item: &i})
		}
	}
}

// delta reads a piece of an item.
func (r *reply) delta(e *event) {
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		r.streamed[e.OutputIndex] = true
		r.text(e.ItemID, e.Delta, e.Type == "response.refusal.delta")
	case "response.reasoning_summary_part.added":
		if e.SummaryIndex > 0 {
			r.parts.Reasoning(e.ItemID, "\n")
		}
	case "response.reasoning_summary_text.delta":
		r.streamed[e.OutputIndex] = true
		r.parts.Reasoning(e.ItemID, e.Delta)
	case "response.function_call_arguments.delta":
		if id, started := r.calls[e.OutputIndex]; started {
			r.parts.CallInput(id, e.Delta)
		}
	}
}

// text adds to a text. A refusal is one, too.
func (r *reply) text(id, delta string, refusal bool) {
	r.refused = r.refused || refusal
	r.parts.Text(id, delta)
}

// cite adds what a text cites: a page or a file.
func (r *reply) cite(a *responses.ResponseOutputTextAnnotationUnion) {
	switch a.Type {
	case "url_citation":
		r.parts.Source(a.URL, a.Title)
	case "file_citation":
		r.parts.Source("", cmp.Or(a.Filename, "Document"))
	}
}

// failure is the error that an event is.
func (e *event) failure(data []byte) error {
	switch {
	case wire.IsError(e.Error): // As in the answers with the status of an error.
		return failure(e.Error)
	case wire.IsError(e.Code), wire.IsError(e.Message):
		return failure(data)
	}
	return wire.IncompleteError() // It has no content.
}

// failure is an error in the shape of an answer with the status of one.
func failure(cause json.RawMessage) error {
	body, err := json.Marshal(map[string]json.RawMessage{"error": cause})
	if err != nil {
		return err
	}
	return wire.EventError(body)
}

func (r *reply) End() (wire.End, error) {
	if r.last == nil {
		return wire.End{}, wire.IncompleteError()
	}
	end := wire.End{Last: finish.Last{ResponseID: r.last.ID, Refused: r.refused,
		Reason: cmp.Or(r.last.Incomplete.Reason, r.last.Status)}}
	if r.last.Usage != nil {
		end.Usage = usageOf(r.last.Usage)
	}
	return end, nil
}

// usageOf counts cached tokens apart from the input, and the reasoning as output. Where there is more reasoning than
// output, a server counts it in addition.
func usageOf(u *responses.ResponseUsage) fantasy.Usage {
	cached, written := u.InputTokensDetails.CachedTokens, u.InputTokensDetails.CacheWriteTokens
	reasoning, output := u.OutputTokensDetails.ReasoningTokens, u.OutputTokens
	if reasoning > output {
		output += reasoning
	}
	return fantasy.Usage{
		InputTokens: max(u.InputTokens-cached-written, 0), OutputTokens: output, TotalTokens: u.InputTokens + output,
		ReasoningTokens: reasoning, CacheReadTokens: cached, CacheCreationTokens: written,
	}
}

// Events implements wire.Reply: the items of the response, and the response.
func (r *reply) Events(document []byte) [][]byte {
	var whole struct {
		Status string            `json:"status"`
		Output []json.RawMessage `json:"output"`
	}
	if json.Unmarshal(document, &whole) != nil || whole.Status == "" {
		return [][]byte{document}
	}
	var events [][]byte
	for index, item := range whole.Output {
		events = append(events, encode(map[string]any{"type": itemDone, "output_index": index,
			"item": item}))
	}
	return append(events, encode(map[string]any{"type": "response." + whole.Status,
		"response": json.RawMessage(document)}))
}

// encode is the JSON of what has texts and JSON alone.
func encode(value any) []byte {
	encoded, _ := json.Marshal(value) // It cannot fail.
	return encoded
}

// item reads an item that begins, or that is whole.
func (r *reply) item(e *event) {
	i, done := e.Item, e.Type == itemDone
	if done {
		r.done[i.ID] = true
	}
	call, isCall := callOf(i)
	if isCall && r.calls[e.OutputIndex] != call.ID {
		r.calls[e.OutputIndex] = call.ID
		r.parts.BeginCall(call)
	}
	switch {
	case !done:
	case isCall:
		r.parts.Call(call)
		if call.OfProvider {
			r.result(call, i)
		}
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
		input := encode(map[string]string{"code": i.Code})
		return wire.Call{ID: i.ID, Name: wire.CodeExecution, Input: string(input), OfProvider: true}, true
	}
	return wire.Call{}, false
}

// result adds what a tool of the provider has found.
func (r *reply) result(call wire.Call, i *responses.ResponseOutputItemUnion) {
	for _, source := range i.Action.Sources {
		r.parts.Source(source.URL, "")
	}
	var lines []string
	for _, output := range i.Outputs {
		lines = append(lines, cmp.Or(output.Logs, output.URL))
	}
	r.parts.Result(call.ID, call.Name, strings.Join(lines, "\n"), nil)
}

// phase is what a text that comes between the calls, or ends a reply, is marked with.
type phase struct {
	Phase responses.EasyInputMessagePhase `json:"phase"`
}

// message ends a text. One that has not come in deltas is in the item.
func (r *reply) message(i *responses.ResponseOutputItemUnion, streamed bool) {
	for _, content := range i.Content {
		if streamed {
			break
		}
		r.text(i.ID, cmp.Or(content.Refusal, content.Text), content.Refusal != "")
		for n := range content.Annotations {
			r.cite(&content.Annotations[n])
		}
	}
	if i.Phase != "" {
		r.parts.TextState(i.ID, wire.State{Item: encode(phase{responses.EasyInputMessagePhase(i.Phase)})})
	}
	r.parts.EndText(i.ID)
}

// reasoning ends a reasoning. One that has not come in deltas is in the item. What goes back has the encrypted content:
// without that the provider does not know what it has not stored.
func (r *reply) reasoning(i *responses.ResponseOutputItemUnion, streamed bool) {
	summary := []map[string]string{}
	for n, paragraph := range i.Summary {
		summary = append(summary, map[string]string{"type": "summary_text", "text": paragraph.Text})
		if !streamed {
			r.parts.Reasoning(i.ID, strings.Repeat("\n", min(n, 1))+paragraph.Text)
		}
	}
	if i.EncryptedContent != "" {
		r.parts.ReasoningState(i.ID, wire.State{Item: encode(map[string]any{"type": "reasoning", "id": i.ID,
			"summary": summary, "encrypted_content": i.EncryptedContent})})
	}
	r.parts.EndReasoning(i.ID)
}
