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

// reply reads a reply.
type reply struct {
	parts *wire.Parts
	// open are the blocks that have begun and not ended, by their index.
	open  map[int64]*block
	usage usage
	end   wire.End
}

// block is one of a reply.
type block struct {
	// signature of a reasoning.
	signature string
	// sources are what a text cites, each once.
	sources []source
	// call is nil for a block that is none. Its Input is what it began with, and input what followed.
	call  *wire.Call
	input strings.Builder
}

// source is a page, or without a URL a document of the prompt.
type source struct{ url, title string }

// usage is what the provider has counted. Its last word on each number counts.
type usage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	OutputDetails struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) count(raw string) { _ = json.Unmarshal([]byte(raw), u) } // What is no number stays as it is.

// Event implements wire.Reply.
func (r *reply) Event(data []byte) (ended bool, err error) {
	var event anthropic.MessageStreamEventUnion
	if json.Unmarshal(data, &event) != nil {
		return false, nil // Other servers have events of their own.
	}
	switch event.Type {
	case "message_start":
		r.end.ResponseID = event.Message.ID
		r.usage.count(event.Message.Usage.RawJSON())
	case "content_block_start":
		r.begin(event.Index, &event.ContentBlock)
	case "content_block_delta":
		r.add(event.Index, &event.Delta)
	case "content_block_stop":
		r.close(event.Index)
	case "message_delta":
		r.end.Reason = cmp.Or(string(event.Delta.StopReason), r.end.Reason)
		r.usage.count(event.Usage.RawJSON())
	case "message_stop":
		return true, nil
	default:
		var failure struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(data, &failure) == nil && wire.IsError(failure.Error) {
			return false, wire.EventError(data)
		}
	}
	return false, nil
}

// begin begins a block. One of a whole reply begins with all that it has.
func (r *reply) begin(index int64, came *anthropic.ContentBlockStartEventContentBlockUnion) {
	b, id := &block{}, strconv.FormatInt(index, 10)
	r.open[index] = b
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
		r.parts.ReasoningState(id, wire.State{Item: json.RawMessage(came.RawJSON())})
	case "tool_use", "server_tool_use":
		b.call = &wire.Call{ID: came.ID, Name: came.Name, Input: came.JSON.Input.Raw()}
		if came.Type == "server_tool_use" {
			b.call.Name, b.call.OfProvider = toolName(came.Name), true
			b.call.State = &wire.State{Item: json.RawMessage(came.RawJSON())}
		}
		r.parts.BeginCall(*b.call)
	default:
		if tool, ok := strings.CutSuffix(came.Type, "_tool_result"); ok {
			r.result(toolName(tool), came)
		}
	}
}

// toolName is the name of a tool of the provider. Executing code is several tools in the protocol.
func toolName(name string) string {
	if strings.HasSuffix(name, wire.CodeExecution) {
		return wire.CodeExecution
	}
	return name
}

// result adds the result of a tool of the provider, behind the pages that it has found.
func (r *reply) result(tool string, came *anthropic.ContentBlockStartEventContentBlockUnion) {
	content := &came.Content
	for _, page := range content.OfWebSearchResultBlockArray {
		r.parts.Source(page.URL, page.Title)
	}
	r.parts.Result(came.ToolUseID, tool, content.Stdout+content.Stderr+content.ErrorCode,
		&wire.State{Item: json.RawMessage(came.RawJSON())})
}

// add adds to a block.
func (r *reply) add(index int64, delta *anthropic.MessageStreamEventUnionDelta) {
	b, id := r.open[index], strconv.FormatInt(index, 10)
	if b == nil {
		return
	}
	switch delta.Type {
	case "text_delta":
		r.parts.Text(id, delta.Text)
	case "thinking_delta":
		r.parts.Reasoning(id, delta.Thinking)
	case "signature_delta":
		b.signature += delta.Signature
	case "citations_delta":
		b.cite(delta.Citation.URL, delta.Citation.Title, delta.Citation.DocumentTitle)
	case "input_json_delta":
		if b.call != nil {
			b.input.WriteString(delta.PartialJSON)
			r.parts.CallInput(b.call.ID, delta.PartialJSON)
		}
	}
}

func (b *block) cite(url, title, document string) {
	if url == "" {
		title = document
	}
	if s := (source{url, title}); !slices.Contains(b.sources, s) {
		b.sources = append(b.sources, s)
	}
}

// close ends a block.
func (r *reply) close(index int64) {
	b, id := r.open[index], strconv.FormatInt(index, 10)
	if b == nil {
		return
	}
	delete(r.open, index)
	if b.call != nil {
		b.call.Input = cmp.Or(b.input.String(), b.call.Input, "{}")
		r.parts.Call(*b.call)
	}
	if b.signature != "" {
		r.parts.ReasoningState(id, wire.State{Signature: b.signature})
	}
	r.parts.EndReasoning(id)
	r.parts.EndText(id)
	for _, s := range b.sources {
		r.parts.Source(s.url, s.title)
	}
}

// Events implements wire.Reply.
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
		ReasoningTokens: r.usage.OutputDetails.Thinking,
	}
	return r.end, nil
}
