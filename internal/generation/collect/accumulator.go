// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collect collects what one step yields, the parts of a model's streamed reply or the results of tools, into
// the content of one ChatMessage. What it holds always fits into one object: it counts the content as the API server
// stores it, and cuts where the room ends.
package collect

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"charm.land/fantasy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/text/clip"
)

// Accumulator collects one reply. Blocks are told apart by kind and id, since some providers use the same id for text
// and reasoning; they stay in the order in which they began. Collecting is linear in the length of the reply.
type Accumulator struct {
	provider v1alpha1.ModelProvider
	room     *room
	ids      *callIDs
	blocks   []*block
	index    map[blockKey]*block
	cited    map[v1alpha1.Source]bool // by URL or, without one, by title
	usage    fantasy.Usage
	last     finish.Last
	open     []openCall
	preview  preview
	warnings []string
	now      func() time.Time // nil: parts say no times
}

// openCall is a call whose arguments the model is writing.
type openCall struct{ providerID, id, name string }

type blockKey struct {
	kind v1alpha1.PartType
	id   string
}

type block struct {
	part     v1alpha1.MessagePart
	text     strings.Builder
	metadata fantasy.ProviderMetadata
	began    time.Time
	finished time.Time
	// ended is whether the provider has ended it; text can still follow.
	ended bool
}

// NewAccumulator returns an accumulator for a reply of the provider to a history that has the given tool-call ids
// already. version makes ids unique that the provider uses again.
func NewAccumulator(provider v1alpha1.ModelProvider, version int64, usedIDs []string) *Accumulator {
	return &Accumulator{provider: provider, room: newRoom(), ids: newCallIDs(version, usedIDs),
		index: map[blockKey]*block{}, cited: map[v1alpha1.Source]bool{}}
}

// EarlierCallsUnknown says that the history has tool calls besides those whose ids were given, so that every call of
// the reply gets an id that no other reply can have. A person's decision about a call names it by its id.
func (a *Accumulator) EarlierCallsUnknown() { a.ids.partial = true }

// TellTime lets the parts of the reply say when they came.
func (a *Accumulator) TellTime(now func() time.Time) { a.now = now }

func (a *Accumulator) time() time.Time {
	if a.now == nil {
		return time.Time{}
	}
	return a.now().UTC()
}

// Add takes one part of the stream and returns what of it is worth showing, if anything.
func (a *Accumulator) Add(p *fantasy.StreamPart) (parts.Part, bool) {
	switch p.Type {
	case fantasy.StreamPartTypeTextStart, fantasy.StreamPartTypeTextDelta, fantasy.StreamPartTypeTextEnd:
		return a.addText(v1alpha1.PartText, parts.Text, p)
	case fantasy.StreamPartTypeReasoningStart, fantasy.StreamPartTypeReasoningDelta, fantasy.StreamPartTypeReasoningEnd:
		return a.addText(v1alpha1.PartReasoning, parts.Reasoning, p)
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

// end takes the end of the reply. One that answers nothing has its usage, too.
func (a *Accumulator) end(p *fantasy.StreamPart) {
	a.usage, a.last = p.Usage, finish.LastOf(p)
	if failed, ok := errors.AsType[*finish.Error](p.Error); ok {
		a.last = finish.Last{Reason: failed.Reason, Outcome: failed.Outcome}
	}
	a.cutCalls()
}

// Warn takes warnings about the call.
func (a *Accumulator) Warn(warnings []fantasy.CallWarning) {
	a.warnings = addWarnings(a.warnings, warnings)
}

func (a *Accumulator) addText(kind v1alpha1.PartType, show parts.Type, p *fantasy.StreamPart) (parts.Part, bool) {
	// Some providers use the id again for the next reasoning of the reply, which has a signature of its own.
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
	if kind == v1alpha1.PartText {
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
	b := &block{part: v1alpha1.MessagePart{Type: key.kind}}
	if !a.room.part(&b.part) {
		return nil
	}
	a.index[key] = b
	a.blocks = append(a.blocks, b)
	return b
}

// toolInput only shows arguments while they are written; the whole call, which follows, is the truth.
func (a *Accumulator) toolInput(p *fantasy.StreamPart) (parts.Part, bool) {
	delta := p.Delta
	if delta == "" {
		delta = p.ToolCallInput
	}
	if p.Type != fantasy.StreamPartTypeToolInputStart {
		return parts.Part{Type: parts.ToolInput, ID: a.ids.of(p.ID), Name: p.ToolCallName, Text: delta}, true
	}
	id := a.ids.begin(p.ID)
	if !p.ProviderExecuted {
		a.open = append(a.open, openCall{p.ID, id, p.ToolCallName})
	}
	return parts.Part{Type: parts.ToolInput, ID: id, Name: p.ToolCallName, Text: delta}, true
}

// cutCalls keeps the calls within which the reply was cut, so that the model learns that they were not made.
func (a *Accumulator) cutCalls() {
	if a.last.Outcome != v1alpha1.ReplyCutByLength {
		return
	}
	for _, open := range a.open {
		call := &v1alpha1.ToolCall{ID: open.id, ProviderID: ofProvider(open.providerID, open.id),
			Name: toolName(open.name), Input: "{}", Refusal: v1alpha1.RefusalCutByLength}
		a.whole(v1alpha1.MessagePart{Type: v1alpha1.PartToolCall, ToolCall: call}, nil)
	}
}

func (a *Accumulator) toolCall(p *fantasy.StreamPart) (parts.Part, bool) {
	id := a.ids.finish(p.ID)
	a.open = slices.DeleteFunc(a.open, func(open openCall) bool { return open.providerID == p.ID })
	call := &v1alpha1.ToolCall{
		ID: id, ProviderID: ofProvider(p.ID, id), Name: toolName(p.ToolCallName), Input: p.ToolCallInput,
		ProviderExecuted: p.ProviderExecuted,
	}
	if !call.ProviderExecuted {
		call.Input, call.Refusal = inputOf(call.Input)
	}
	at := a.time()
	if !a.whole(v1alpha1.MessagePart{Type: v1alpha1.PartToolCall, ToolCall: call, StartedAt: microTime(at)},
		p.ProviderMetadata) {
		return parts.Part{}, false
	}
	return parts.Part{Type: parts.ToolCall, ID: call.ID, Name: call.Name, Text: call.Input, At: at}, true
}

// inputOf is the input of a call as it is kept: an empty object if the model wrote nothing or null. Anything else that
// is no JSON object is kept as it is, and the call is not run.
func inputOf(written string) (string, v1alpha1.CallRefusal) {
	if text := strings.TrimSpace(written); text == "" || text == "null" {
		return "{}", ""
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(written), &object) != nil {
		return written, v1alpha1.RefusalInputInvalid
	}
	return written, ""
}

func (a *Accumulator) toolResult(p *fantasy.StreamPart) (parts.Part, bool) {
	result := &v1alpha1.ToolResult{ID: a.ids.of(p.ID), Name: toolName(p.ToolCallName), Output: p.Delta,
		ProviderExecuted: true}
	at := a.time()
	if !a.whole(v1alpha1.MessagePart{Type: v1alpha1.PartToolResult, ToolResult: result, FinishedAt: microTime(at)},
		p.ProviderMetadata) {
		return parts.Part{}, false
	}
	return parts.Part{Type: parts.ToolResult, ID: result.ID, Name: result.Name, Text: result.Output, At: at}, true
}

// source adds a source once, however often the reply cites it,
// and leaves out one that does not fit: no source ends a reply.
func (a *Accumulator) source(p *fantasy.StreamPart) (parts.Part, bool) {
	source := &v1alpha1.Source{ID: clip.Bytes(p.ID, 256), URL: clip.Bytes(p.URL, 4096), Title: clip.Bytes(p.Title, 1024)}
	key := v1alpha1.Source{URL: source.URL}
	if key.URL == "" {
		key.Title = source.Title
	}
	if a.cited[key] || !a.room.source(source) {
		return parts.Part{}, false
	}
	a.cited[key] = true
	a.blocks = append(a.blocks, &block{part: v1alpha1.MessagePart{Type: v1alpha1.PartSource, Source: source}})
	return parts.Part{Type: parts.Source, ID: source.ID, Name: source.Title, URL: source.URL}, true
}

// whole adds a part that is kept whole or not at all.
func (a *Accumulator) whole(part v1alpha1.MessagePart, metadata fantasy.ProviderMetadata) bool {
	b := &block{part: part, metadata: metadata}
	if !a.room.part(&b.part) {
		return false
	}
	a.blocks = append(a.blocks, b)
	return true
}

// Full reports whether the room has ended, so that whatever else the model says is lost.
func (a *Accumulator) Full() bool { return a.room.full }

// Step is the content of one step.
type Step struct {
	Parts []v1alpha1.MessagePart
	Usage v1alpha1.TokenUsage
	// MessageGeneration is the account of the content. Package step adds Usage, models and costs to it, and package
	// runner the attempt.
	v1alpha1.MessageGeneration
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
		s.ReplyOutcome = v1alpha1.ReplyCutByLength
	}
	for _, b := range a.blocks {
		b.part.ProviderMetadata = a.metadata(b.metadata)
		if b.part.Type == v1alpha1.PartText || b.part.Type == v1alpha1.PartReasoning {
			if b.text.Len() == 0 && b.part.ProviderMetadata == "" {
				continue
			}
			b.part.Text = new(b.text.String())
		}
		if b.part.Type == v1alpha1.PartReasoning {
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

// reasoningTitle is how OpenAI and Google write the title of a summary of thoughts.
var reasoningTitle = regexp.MustCompile(`^\*\*([^*\n]{1,200})\*\*\s*(?:\n|$)`)

// titleOf is the title of a reasoning; empty if it has none.
func titleOf(text string) string {
	if m := reasoningTitle.FindStringSubmatch(text); m != nil {
		return clip.Bytes(strings.TrimSpace(m[1]), maxAccountID)
	}
	return ""
}

// microTime is the time as the API has it; nil for the zero time.
func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewMicroTime(t))
}

// metadata encodes what the provider wants back, if there is room for it: without it the provider only loses some of
// the model's reasoning.
func (a *Accumulator) metadata(m fantasy.ProviderMetadata) string {
	if len(m) == 0 {
		return ""
	}
	raw, err := json.Marshal(m)
	if err != nil || len(raw) > v1alpha1.MaxProviderMetadataBytes || !a.room.extra(string(raw)) {
		return ""
	}
	return string(raw)
}

// toolName returns the name, cut to what a ChatMessage can hold. Models also call tools that the request did not offer,
// without a name, or by a name that no tool has.
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
