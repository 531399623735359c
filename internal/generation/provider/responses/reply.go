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

// reply reads one reply. Items are told apart by their place in it.
type reply struct {
	parts *wire.Parts
	// calls are the ids of the calls that have begun.
	calls map[int64]string
	// streamed are the items whose text has come in deltas.
	streamed map[int64]bool
	refused  bool
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
	Response     *response                                    `json:"response"`
	failure
}

// response is what counts of a response at its end.
type response struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage responses.ResponseUsage `json:"usage"`
	Error json.RawMessage         `json:"error"`
}

// failure is an error. Some servers have it within a field, as the answers with the status of an error do.
type failure struct {
	Code    any             `json:"code"`
	Message any             `json:"message"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// Event implements wire.Reply.
func (r *reply) Event(data []byte) (bool, error) {
	var e event
	_ = json.Unmarshal(data, &e) // What does not fit stays empty.
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		r.streamed[e.OutputIndex], r.refused = true, r.refused || e.Type == "response.refusal.delta"
		r.parts.Text(e.ItemID, e.Delta)
	case "response.reasoning_summary_part.added":
		r.paragraph(e.ItemID, e.SummaryIndex)
	case "response.reasoning_summary_text.delta":
		r.streamed[e.OutputIndex] = true
		r.parts.Reasoning(e.ItemID, e.Delta)
	case "response.function_call_arguments.delta":
		if id, begun := r.calls[e.OutputIndex]; begun {
			r.parts.CallInput(id, e.Delta)
		}
	case "response.output_text.annotation.added":
		r.cite(e.Annotation)
	case "response.output_item.added", "response.output_item.done":
		r.item(&e)
	case "response.completed", "response.incomplete", "response.cancelled":
		return true, r.end(&e)
	case "response.failed", "error":
		return true, e.error()
	}
	return false, nil
}

// paragraph separates the paragraphs of a reasoning.
func (r *reply) paragraph(id string, index int64) {
	if index > 0 {
		r.parts.Reasoning(id, "\n")
	}
}

// cite adds what a text cites: a page or a file.
func (r *reply) cite(a *responses.ResponseOutputTextAnnotationUnion) {
	switch {
	case a == nil:
	case a.Type == "url_citation":
		r.parts.Source(a.URL, a.Title)
	case a.Type == "file_citation":
		r.parts.Source("", cmp.Or(a.Filename, "Document"))
	}
}

// end keeps how the reply has ended.
func (r *reply) end(e *event) error {
	if e.Response == nil {
		return wire.IncompleteError()
	}
	r.last = e.Response
	r.last.Status = cmp.Or(r.last.Status, strings.TrimPrefix(e.Type, "response."))
	return nil
}

// error is what the provider says of a reply that has failed, as the answers with the status of an error say it.
func (e *event) error() error {
	said := e.failure.Error
	if e.Response != nil {
		said = e.Response.Error
	}
	if !wire.IsError(said) {
		said, _ = json.Marshal(failure{Code: e.Code, Message: e.Message}) // These are JSON.
	}
	body, err := json.Marshal(map[string]json.RawMessage{"error": said})
	if err != nil {
		return err
	}
	return wire.EventError(body)
}

// End implements wire.Reply.
func (r *reply) End() (wire.End, error) {
	if r.last == nil {
		return wire.End{}, wire.IncompleteError()
	}
	return wire.End{Usage: usageOf(&r.last.Usage), Last: finish.Last{ResponseID: r.last.ID, Refused: r.refused,
		Reason: cmp.Or(r.last.Incomplete.Reason, r.last.Status)}}, nil
}

// usageOf counts the cache beside the input, and the reasoning within the output. Where there is more reasoning than
// output, a server counts it beside.
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
func (r *reply) Events(document []byte) (events [][]byte) {
	var whole struct {
		Status string            `json:"status"`
		Output []json.RawMessage `json:"output"`
	}
	if json.Unmarshal(document, &whole) != nil || whole.Status == "" {
		return [][]byte{document}
	}
	add := func(event map[string]any) {
		encoded, _ := json.Marshal(event) // It is of JSON.
		events = append(events, encoded)
	}
	for index, item := range whole.Output {
		add(map[string]any{"type": "response.output_item.done", "output_index": index, "item": item})
	}
	add(map[string]any{"type": "response." + whole.Status, "response": json.RawMessage(document)})
	return events
}
