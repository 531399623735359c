// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/finish"
)

// kind is what a block of a reply holds.
type kind int

const (
	text kind = iota
	reasoning
)

// types are the types of the parts of a block.
var types = map[kind]struct{ start, delta, end fantasy.StreamPartType }{
	text: {fantasy.StreamPartTypeTextStart, fantasy.StreamPartTypeTextDelta, fantasy.StreamPartTypeTextEnd},
	reasoning: {fantasy.StreamPartTypeReasoningStart, fantasy.StreamPartTypeReasoningDelta,
		fantasy.StreamPartTypeReasoningEnd},
}

// block is a text or a reasoning that has started.
type block struct {
	kind  kind
	id    string
	state *State
}

// Parts passes the parts of a reply to the reader of the stream. It begins a block with its first delta. It belongs to
// the goroutine that reads the stream.
type Parts struct {
	yield func(fantasy.StreamPart) bool
	// protocol is that of the reply.
	protocol finish.Protocol
	// stopped is whether no more parts are read.
	stopped bool
	// open are the blocks that have started and not ended, in the order of their starts.
	open []*block
}

func (p *Parts) add(part fantasy.StreamPart) {
	if !p.stopped {
		p.stopped = !p.yield(part)
	}
}

// Warn adds warnings about the call.
func (p *Parts) Warn(warnings ...fantasy.CallWarning) {
	if len(warnings) > 0 {
		p.add(fantasy.StreamPart{Type: fantasy.StreamPartTypeWarnings, Warnings: warnings})
	}
}

// Text adds to the text with the id. An empty delta changes nothing.
func (p *Parts) Text(id, delta string) { p.write(text, id, delta) }

// Reasoning adds to the reasoning with the id. An empty delta changes nothing.
func (p *Parts) Reasoning(id, delta string) { p.write(reasoning, id, delta) }

func (p *Parts) write(k kind, id, delta string) {
	if delta != "" {
		p.begin(k, id)
		p.add(fantasy.StreamPart{Type: types[k].delta, ID: id, Delta: delta})
	}
}

func (p *Parts) begin(k kind, id string) *block {
	for _, b := range p.open {
		if b.kind == k && b.id == id {
			return b
		}
	}
	b := &block{kind: k, id: id}
	p.open = append(p.open, b)
	p.add(fantasy.StreamPart{Type: types[k].start, ID: id})
	return b
}

// TextState gives the text with the id what the provider wants back with it.
func (p *Parts) TextState(id string, state State) { p.begin(text, id).state = &state }

// ReasoningState gives the reasoning with the id what the provider wants back with it.
func (p *Parts) ReasoningState(id string, state State) { p.begin(reasoning, id).state = &state }

// EndText ends the text with the id, if it has started.
func (p *Parts) EndText(id string) {
	p.end(func(b *block) bool { return b.kind == text && b.id == id })
}

// EndReasoning ends the reasoning with the id, if it has started.
func (p *Parts) EndReasoning(id string) {
	p.end(func(b *block) bool { return b.kind == reasoning && b.id == id })
}

// EndAll ends all texts and reasonings.
func (p *Parts) EndAll() { p.end(func(*block) bool { return true }) }

func (p *Parts) end(matches func(*block) bool) {
	var open []*block
	for _, b := range p.open {
		if !matches(b) {
			open = append(open, b)
			continue
		}
		p.add(fantasy.StreamPart{Type: types[b.kind].end, ID: b.id, ProviderMetadata: p.metadata(b.state)})
	}
	p.open = open
}

// metadata are those of a part with the state; nil: it has none.
func (p *Parts) metadata(state *State) fantasy.ProviderMetadata {
	if state == nil {
		return nil
	}
	own := *state
	own.Protocol = p.protocol
	return own.metadata()
}

// Call is a call of a tool. Input is JSON, as the model has written it.
type Call struct {
	ID, Name, Input string
	// OfProvider is whether the provider runs the tool itself.
	OfProvider bool
	// State is what the provider wants back with the call; nil: nothing.
	State *State
}

// BeginCall shows that the model begins a call, whose input follows.
func (p *Parts) BeginCall(c Call) {
	p.add(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputStart, ID: c.ID, ToolCallName: c.Name,
		ProviderExecuted: c.OfProvider})
}

// CallInput shows a piece of the input of a call that has started.
func (p *Parts) CallInput(id, delta string) {
	if delta != "" {
		p.add(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputDelta, ID: id, Delta: delta})
	}
}

// Call adds the whole of a call that has started.
func (p *Parts) Call(c Call) {
	p.add(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputEnd, ID: c.ID})
	p.add(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: c.ID, ToolCallName: c.Name,
		ToolCallInput: c.Input, ProviderExecuted: c.OfProvider, ProviderMetadata: p.metadata(c.State)})
}

// Result adds the result of a call that the provider has run. Its text is what people see.
func (p *Parts) Result(id, name, text string, state *State) {
	p.add(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolResult, ID: id, ToolCallName: name, Delta: text,
		ProviderExecuted: true, ProviderMetadata: p.metadata(state)})
}

// Source adds what the reply cites: a page, or without a URL a document of the prompt.
func (p *Parts) Source(url, title string) {
	part := fantasy.StreamPart{Type: fantasy.StreamPartTypeSource, SourceType: fantasy.SourceTypeURL, ID: url, URL: url,
		Title: title}
	if url == "" {
		part.SourceType = fantasy.SourceTypeDocument
	}
	p.add(part)
}
