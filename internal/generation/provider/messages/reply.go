// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"charm.land/fantasy"
	"github.com/anthropics/anthropic-sdk-go"

	"parley.dev/parley/internal/generation/provider/wire"
)

type reply struct {
	parts *wire.Parts
	// open are the blocks that have started and not ended, by their index.
	open  map[int64]*block
	end   wire.End
	usage counts
}

// counts are the tokens that the provider counts.
type counts struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
}

type block struct {
	id, signature string
	// sources are what a text cites, each once: a page and its title, or without a page a document of the prompt.
	sources [][2]string
	// call is nil for a block that is none. Its Input is what it began with, and input what followed.
	call  *wire.Call
	input strings.Builder
}

func (r *reply) Event(data []byte) (ended bool, err error) {
	var event anthropic.MessageStreamEventUnion
	_ = json.Unmarshal(data, &event) // One that is no object has no type.
	switch event.Type {
	case "message_start":
		r.end.ResponseID = event.Message.ID
		r.count(event.Message.Usage.RawJSON())
	case "content_block_start":
		r.close(event.Index) // Some servers end no block.
		r.open[event.Index] = r.begin(strconv.FormatInt(event.Index, 10), &event.ContentBlock)
	case "content_block_delta":
		r.add(r.open[event.Index], &event.Delta)
	case "content_block_stop":
		r.close(event.Index)
	case "message_delta":
		r.end.Reason = cmp.Or(string(event.Delta.StopReason), r.end.Reason)
		r.count(event.Usage.RawJSON())
	case "message_stop":
		return true, nil
	default:
		return false, failure(event.Type, data)
	}
	return false, nil
}

// failure is the error that an event is; nil if it is none. Some servers give their errors no type, others only a
// message.
func failure(kind string, data []byte) error {
	var event struct{ Error, Message json.RawMessage }
	if json.Unmarshal(data, &event) == nil &&
		(wire.IsError(event.Error) || kind == "error" && wire.IsError(event.Message)) {
		return wire.EventError(data)
	}
	return nil
}

// count takes what the provider has counted. The last count of each kind counts, unless it is 0: some servers have only
// what is new in the last one.
func (r *reply) count(usage string) {
	var counted counts
	_ = json.Unmarshal([]byte(usage), &counted) // What does not fit is not counted.
	r.usage = counts{cmp.Or(counted.Input, r.usage.Input), cmp.Or(counted.Output, r.usage.Output),
		cmp.Or(counted.CacheCreation, r.usage.CacheCreation), cmp.Or(counted.CacheRead, r.usage.CacheRead)}
}

// begin begins a block. One of a whole reply begins with all that it has.
func (r *reply) begin(id string, came *anthropic.ContentBlockStartEventContentBlockUnion) *block {
	b, state := &block{id: id}, wire.State{Item: json.RawMessage(came.RawJSON())}
	switch came.Type {
	case "text":
		r.parts.Text(id, came.Text)
		for i := range came.Citations {
			b.cite(came.Citations[i].URL, came.Citations[i].Title, came.Citations[i].DocumentTitle)
		}
	case "thinking":
		b.signature = came.Signature
		r.parts.Reasoning(id, came.Thinking)
	case "redacted_thinking":
		r.parts.ReasoningState(id, state)
	case "tool_use", "server_tool_use":
		b.call = &wire.Call{ID: came.ID, Name: came.Name, Input: came.JSON.Input.Raw()}
		if came.Type == "server_tool_use" {
			b.call.Name, b.call.OfProvider, b.call.State = toolName(came.Name), true, &state
		}
		r.parts.BeginCall(*b.call)
	default:
		if tool, ok := strings.CutSuffix(came.Type, "_tool_result"); ok {
			for _, page := range came.Content.OfWebSearchResultBlockArray {
				r.parts.Source(page.URL, page.Title)
			}
			r.parts.Result(came.ToolUseID, toolName(tool), came.Content.Stdout+came.Content.Stderr+came.Content.ErrorCode,
				&state)
		}
	}
	return b
}

// toolName is the name of a tool of the provider. To execute code is several tools in the protocol.
func toolName(name string) string {
	if strings.HasSuffix(name, wire.CodeExecution) {
		return wire.CodeExecution
	}
	return name
}

func (r *reply) add(b *block, delta *anthropic.MessageStreamEventUnionDelta) {
	switch {
	case b == nil:
	case delta.Type == "text_delta":
		r.parts.Text(b.id, delta.Text)
	case delta.Type == "thinking_delta":
		r.parts.Reasoning(b.id, delta.Thinking)
	case delta.Type == "signature_delta":
		b.signature += delta.Signature
	case delta.Type == "citations_delta":
		b.cite(delta.Citation.URL, delta.Citation.Title, delta.Citation.DocumentTitle)
	case delta.Type == "input_json_delta" && b.call != nil:
		b.input.WriteString(delta.PartialJSON)
		r.parts.CallInput(b.call.ID, delta.PartialJSON)
	}
}

func (b *block) cite(url, title, document string) {
	if url == "" {
		title = document
	}
	if source := [2]string{url, title}; !slices.Contains(b.sources, source) {
		b.sources = append(b.sources, source)
	}
}

func (r *reply) close(index int64) {
	b := r.open[index]
	if b == nil {
		return
	}
	delete(r.open, index)
	if b.call != nil {
		b.call.Input = cmp.Or(b.input.String(), b.call.Input, "{}")
		r.parts.Call(*b.call)
	}
	if b.signature != "" {
		r.parts.ReasoningState(b.id, wire.State{Signature: b.signature})
	}
	r.parts.EndReasoning(b.id)
	r.parts.EndText(b.id)
	for _, source := range b.sources {
		r.parts.Source(source[0], source[1])
	}
}

func (r *reply) Events(document []byte) [][]byte {
	var message struct {
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
	}
	if json.Unmarshal(document, &message) != nil || message.StopReason == "" {
		return [][]byte{document}
	}
	events := [][]byte{fmt.Appendf(nil, `{"type":"message_start","message":%s}`, document)}
	for i, block := range message.Content {
		events = append(events, fmt.Appendf(nil, `{"type":"content_block_start","index":%d,"content_block":%s}`, i, block),
			fmt.Appendf(nil, `{"type":"content_block_stop","index":%d}`, i))
	}
	return append(events, fmt.Appendf(nil, `{"type":"message_delta","delta":{"stop_reason":%q}}`, message.StopReason))
}

// End implements wire.Reply. A reply that is cut ends within a block.
func (r *reply) End() (wire.End, error) {
	if r.end.Reason == "" {
		return wire.End{}, wire.IncompleteError()
	}
	for _, index := range slices.Sorted(maps.Keys(r.open)) {
		r.close(index)
	}
	r.end.Usage = fantasy.Usage{
		InputTokens: r.usage.Input, OutputTokens: r.usage.Output, TotalTokens: r.usage.Input + r.usage.Output,
		CacheCreationTokens: r.usage.CacheCreation, CacheReadTokens: r.usage.CacheRead,
	}
	return r.end, nil
}
