// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collect collects the parts of a streamed reply, or the results of tools, to the content of one ChatMessage.
// The content always fits into one object: it is counted as the API server stores it, and cut at the limit.
package collect

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"charm.land/fantasy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/text/clip"
)

// Accumulator collects one reply. Its blocks are identified by kind and id, since some providers use the same id for
// text and reasoning, and stay in the order of their beginning. Collecting is linear in the length of the reply.
type Accumulator struct {
	provider v1beta1.ModelProvider
	room     *room
	ids      *callIDs
	blocks   []*block
	index    map[blockKey]*block
	cited    map[v1beta1.Source]bool // by URL or, without one, by title
	usage    fantasy.Usage
	last     finish.Last
	open     []openCall
	inputs   int // bytes of the inputs of calls so far
	preview  preview
	warnings []string
	now      func() time.Time // nil: parts have no times
}

// openCall is a call with incomplete arguments.
type openCall struct{ providerID, id, name string }

type blockKey struct {
	kind v1beta1.PartType
	id   string
}

type block struct {
	part     v1beta1.MessagePart
	text     strings.Builder
	metadata fantasy.ProviderMetadata
	began    time.Time
	finished time.Time
	ended    bool // text can still follow
}

// NewAccumulator returns an accumulator for a reply of the provider to a history with the used tool-call ids. version
// makes reused ids unique.
func NewAccumulator(provider v1beta1.ModelProvider, version int64, usedIDs []string) *Accumulator {
	return &Accumulator{provider: provider, room: newRoom(), ids: newCallIDs(version, usedIDs),
		index: map[blockKey]*block{}, cited: map[v1beta1.Source]bool{}}
}

// EarlierCallsUnknown declares that the history has other tool calls, so that every call of the reply needs an id that
// no other reply can have: people's decisions name calls by their ids.
func (a *Accumulator) EarlierCallsUnknown() { a.ids.partial = true }

// TellTime adds times to the parts of the reply.
func (a *Accumulator) TellTime(now func() time.Time) { a.now = now }

func (a *Accumulator) time() time.Time {
	if a.now == nil {
		return time.Time{}
	}
	return a.now().UTC()
}

// Add adds a part of the stream, and returns the part to show, if any.
func (a *Accumulator) Add(p *fantasy.StreamPart) (parts.Part, bool) {
	switch p.Type {
	case fantasy.StreamPartTypeTextStart, fantasy.StreamPartTypeTextDelta, fantasy.StreamPartTypeTextEnd:
		return a.addText(v1beta1.PartText, parts.Text, p)
	case fantasy.StreamPartTypeReasoningStart, fantasy.StreamPartTypeReasoningDelta, fantasy.StreamPartTypeReasoningEnd:
		return a.addText(v1beta1.PartReasoning, parts.Reasoning, p)
	case fantasy.StreamPartTypeToolInputStart, fantasy.StreamPartTypeToolInputDelta:
		return a.toolInput(p)
	case fantasy.StreamPartTypeToolCall:
		return a.toolCall(p)
	case fantasy.StreamPartTypeToolResult:
		return a.toolResult(p)
	case fantasy.StreamPartTypeSource:
		return a.source(p)
	case fantasy.StreamPartTypeWarnings:
		a.Warn(p.Warnings)
	case fantasy.StreamPartTypeFinish, fantasy.StreamPartTypeError:
		a.end(p)
	}
	return parts.Part{}, false
}

// end ends the reply. A refused one has a usage, too.
func (a *Accumulator) end(p *fantasy.StreamPart) {
	a.usage, a.last = p.Usage, finish.LastOf(p)
	if failed, ok := errors.AsType[*finish.Error](p.Error); ok {
		a.last = finish.Last{Reason: failed.Reason, Outcome: failed.Outcome}
	}
	a.cutCalls()
}

// Warn adds warnings about the call.
func (a *Accumulator) Warn(warnings []fantasy.CallWarning) {
	a.warnings = addWarnings(a.warnings, warnings)
}

func (a *Accumulator) addText(kind v1beta1.PartType, show parts.Type, p *fantasy.StreamPart) (parts.Part, bool) {
	// Some providers reuse the id for the next reasoning of the reply, which has its own signature.
	key := blockKey{kind, p.ID}
	if p.Type == fantasy.StreamPartTypeReasoningStart && a.index[key] != nil && a.index[key].ended {
		delete(a.index, key)
	}
	b := a.block(key)
	if b == nil {
		return parts.Part{}, false
	}
	if p.ProviderMetadata != nil {
		b.metadata = p.ProviderMetadata
	}
	if p.Type == fantasy.StreamPartTypeReasoningEnd {
		b.ended, b.finished = true, a.time()
	}
	text := a.room.text(p.Delta)
	if text == "" {
		return parts.Part{}, false
	}
	part := parts.Part{Type: show, ID: p.ID, Text: text}
	if kind == v1beta1.PartText {
		a.preview.add(text)
	} else if b.text.Len() == 0 {
		b.began = a.time()
		part.At = b.began
	}
	b.text.WriteString(text)
	return part, true
}

func (a *Accumulator) block(key blockKey) *block {
	if b := a.index[key]; b != nil {
		return b
	}
	b := &block{part: v1beta1.MessagePart{Type: key.kind}}
	if !a.room.part(&b.part) {
		return nil
	}
	a.index[key] = b
	a.blocks = append(a.blocks, b)
	return b
}

// toolInput shows incomplete arguments. The complete call follows. A reply with more of them than fit is full: the
// calls would not fit either, and a server can write them without end.
func (a *Accumulator) toolInput(p *fantasy.StreamPart) (parts.Part, bool) {
	shown := parts.Part{Type: parts.ToolInput, Name: p.ToolCallName, Text: cmp.Or(p.Delta, p.ToolCallInput)}
	if p.Type != fantasy.StreamPartTypeToolInputStart {
		shown.ID = a.ids.current(p.ID)
		if a.inputs += len(p.Delta); a.inputs > v1beta1.MaxContentBytes {
			a.cutOpen()
			a.room.full = true
		}
		return shown, true
	}
	shown.ID = a.ids.begin(p.ID)
	if !p.ProviderExecuted {
		a.open = append(a.open, openCall{p.ID, shown.ID, p.ToolCallName})
	}
	return shown, true
}

// cutCalls adds the calls within which the reply was cut, so that the model learns that they did not run.
func (a *Accumulator) cutCalls() {
	if a.last.Outcome == v1beta1.ReplyMaxTokensReached {
		a.cutOpen()
	}
}

func (a *Accumulator) cutOpen() {
	for _, open := range a.open {
		call := &v1beta1.ToolCall{ID: open.id, ProviderID: ofProvider(open.providerID, open.id),
			Name: toolName(open.name), Input: "{}", Refusal: v1beta1.RefusalInputTruncated}
		a.whole(v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: call}, nil)
	}
}

func (a *Accumulator) toolCall(p *fantasy.StreamPart) (parts.Part, bool) {
	id := a.ids.finish(p.ID)
	a.open = slices.DeleteFunc(a.open, func(open openCall) bool { return open.providerID == p.ID })
	call := &v1beta1.ToolCall{
		ID: id, ProviderID: ofProvider(p.ID, id), Name: toolName(p.ToolCallName), Input: p.ToolCallInput,
		ProviderExecuted: p.ProviderExecuted,
	}
	if !call.ProviderExecuted {
		call.Input, call.Refusal = inputOf(call.Input)
	}
	at := a.time()
	if !a.whole(v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: call, StartedAt: microTime(at)},
		p.ProviderMetadata) {
		return parts.Part{}, false
	}
	return parts.Part{Type: parts.ToolCall, ID: call.ID, Name: call.Name, Text: call.Input, At: at}, true
}

// inputOf is the input of a call: an empty object for nothing or null. Anything else that is no JSON object stays
// unchanged, and the call is refused.
func inputOf(written string) (string, v1beta1.CallRefusal) {
	if text := strings.TrimSpace(written); text == "" || text == "null" {
		return "{}", ""
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(written), &object) != nil {
		return written, v1beta1.RefusalInputInvalid
	}
	return written, ""
}

func (a *Accumulator) toolResult(p *fantasy.StreamPart) (parts.Part, bool) {
	result := &v1beta1.ToolResult{ID: a.ids.current(p.ID), Name: toolName(p.ToolCallName), Output: p.Delta,
		ProviderExecuted: true}
	at := a.time()
	if !a.whole(v1beta1.MessagePart{Type: v1beta1.PartToolResult, ToolResult: result, FinishedAt: microTime(at)},
		p.ProviderMetadata) {
		return parts.Part{}, false
	}
	return parts.Part{Type: parts.ToolResult, ID: result.ID, Name: result.Name, Text: result.Output, At: at}, true
}

// source adds a source once, and omits one that does not fit: no source ends a reply.
func (a *Accumulator) source(p *fantasy.StreamPart) (parts.Part, bool) {
	source := &v1beta1.Source{ID: clip.Bytes(p.ID, 256), URL: clip.Bytes(p.URL, 4096), Title: clip.Bytes(p.Title, 1024)}
	key := v1beta1.Source{URL: source.URL}
	if key.URL == "" {
		key.Title = source.Title
	}
	if a.cited[key] || !a.room.source(source) {
		return parts.Part{}, false
	}
	a.cited[key] = true
	a.blocks = append(a.blocks, &block{part: v1beta1.MessagePart{Type: v1beta1.PartSource, Source: source}})
	return parts.Part{Type: parts.Source, ID: source.ID, Name: source.Title, URL: source.URL}, true
}

// whole adds a part that cannot be cut, if it fits.
func (a *Accumulator) whole(part v1beta1.MessagePart, metadata fantasy.ProviderMetadata) bool {
	b := &block{part: part, metadata: metadata}
	if !a.room.part(&b.part) {
		return false
	}
	a.blocks = append(a.blocks, b)
	return true
}

// Full reports whether the reply has reached the limit, so that later parts are lost.
func (a *Accumulator) Full() bool { return a.room.full }

// Step is the content of one step.
type Step struct {
	Parts []v1beta1.MessagePart
	Usage v1beta1.TokenUsage
	// MessageGeneration is the account of the content. Package step adds Usage, models and costs to it, and package
	// runner the attempt.
	v1beta1.MessageGeneration
}

// maxFinishReason and maxAccountID limit the finish reason and the provider's ids, in bytes.
const maxFinishReason, maxAccountID = 63, 256

// Finish returns what was collected.
func (a *Accumulator) Finish() Step {
	s := Step{Usage: usageOf(a.provider, a.usage)}
	s.ReplyOutcome, s.FinishReason = a.last.Outcome, clip.Bytes(a.last.Reason, maxFinishReason)
	s.ResponseID = clip.Bytes(a.last.ResponseID, maxAccountID)
	s.RequestID = clip.Bytes(a.last.RequestID, maxAccountID)
	s.Preview, s.Truncated, s.Warnings = a.preview.String(), a.room.full, a.warnings
	if s.Truncated {
		s.ReplyOutcome = v1beta1.ReplyMaxTokensReached
	}
	for _, b := range a.blocks {
		b.part.ProviderMetadata = a.metadata(b.metadata)
		if b.part.Type == v1beta1.PartText || b.part.Type == v1beta1.PartReasoning {
			if b.text.Len() == 0 && b.part.ProviderMetadata == "" {
				continue
			}
			b.part.Text = new(b.text.String())
		}
		if b.part.Type == v1beta1.PartReasoning {
			b.part.StartedAt, b.part.FinishedAt = microTime(b.began), microTime(b.finished)
			b.part.Title = titleOf(*b.part.Text)
		}
		if call := b.part.ToolCall; call != nil && !call.ProviderExecuted {
			s.PendingCalls++
		}
		s.Parts = append(s.Parts, b.part)
	}
	return s
}

// reasoningTitle is the title of a reasoning summary by OpenAI or Google.
var reasoningTitle = regexp.MustCompile(`^\*\*([^*\n]{1,200})\*\*\s*(?:\n|$)`)

func titleOf(text string) string {
	if m := reasoningTitle.FindStringSubmatch(text); m != nil {
		return clip.Bytes(strings.TrimSpace(m[1]), maxAccountID)
	}
	return ""
}

// microTime converts a time; nil for the zero time.
func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewMicroTime(t))
}

// metadata encodes the provider's metadata, if there is room: without them only some of the reasoning is lost.
func (a *Accumulator) metadata(m fantasy.ProviderMetadata) string {
	if len(m) == 0 {
		return ""
	}
	raw, err := json.Marshal(m)
	if err != nil || len(raw) > v1beta1.MaxProviderMetadataBytes || !a.room.extra(string(raw)) {
		return ""
	}
	return string(raw)
}

// toolName is a valid name for a ChatMessage. Models also call tools without a name, or by names that no tool has.
func toolName(name string) string {
	if name == "" {
		return "unnamed"
	}
	return clip.Bytes(strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, name), 128)
}
