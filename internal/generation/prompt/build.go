// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
)

const (
	// nothing is what the model reads in place of a result without text: providers refuse empty texts.
	nothing = "(no output)"
	// maxToolName is the longest name of a tool that every provider takes.
	maxToolName = 64
)

// builder makes messages of a history, one after the other.
type builder struct {
	Input
	paired   *pairing
	files    map[FileKey]File
	messages []fantasy.Message
}

// add adds a message, unless it says nothing. Providers refuse one that ends with reasoning or is nothing else.
func (b *builder) add(role fantasy.MessageRole, content []fantasy.MessagePart) {
	if content = withoutLastReasoning(content); len(content) > 0 {
		b.messages = append(b.messages, message(role, content...))
	}
}

func (b *builder) message(i int, m *v1alpha1.ChatMessage) {
	switch m.Spec.Role {
	case v1alpha1.RoleAssistant:
		b.assistant(i, m)
	case v1alpha1.RoleTool:
		b.orphans(i, m)
		b.attached(m)
	default:
		b.user(m)
	}
}

func (b *builder) user(m *v1alpha1.ChatMessage) {
	if m.Spec.IsNote() { // No history has one. Whatever hands one in, the model is not told.
		return
	}
	var content []fantasy.MessagePart
	add := func(text string) {
		if text = clean(text); !blank(text) {
			content = append(content, fantasy.TextPart{Text: text})
		}
	}
	add(m.Spec.Content)
	for i := range m.Spec.Parts {
		switch part := &m.Spec.Parts[i]; {
		case part.File != nil:
			content = append(content, b.file(FileKey{m.Name, i}, part.File))
		case part.Type == v1alpha1.PartText && part.Text != nil:
			add(*part.Text)
		}
	}
	b.add(fantasy.MessageRoleUser, content)
}

// assistant adds a reply, and the results of its calls right after it.
func (b *builder) assistant(i int, m *v1alpha1.ChatMessage) {
	var said, results []fantasy.MessagePart
	own := b.Dialect.wrote(m)
	for j := range m.Spec.Parts {
		part := &m.Spec.Parts[j]
		switch call := part.ToolCall; {
		case call == nil:
			said = append(said, b.spoken(part, own)...)
		case call.ProviderExecuted:
			said = b.withOwnCall(said, b.ownCall(place{i, j}, part, own))
		default:
			id := b.paired.ids[place{i, j}]
			said = append(said, fantasy.ToolCallPart{ToolCallID: id, ToolName: toolName(call.Name), Input: object(call.Input),
				ProviderOptions: b.options(part, own)})
			results = append(results, b.result(id, b.answer(place{i, j})))
		}
	}
	if b.Dialect.JoinTexts {
		said = joinTexts(said)
	}
	if b.paused(i) && len(said) > 0 { // It goes back unchanged, also if it ends with reasoning.
		b.messages = append(b.messages, message(fantasy.MessageRoleAssistant, said...))
		return
	}
	b.add(fantasy.MessageRoleAssistant, b.signed(said))
	b.add(fantasy.MessageRoleTool, results)
	b.correct(m)
}

// correct tells the model what of its answer does not match the schema that was asked for.
func (b *builder) correct(m *v1alpha1.ChatMessage) {
	if g := m.Spec.Generation; g != nil && g.Output != nil && g.Output.Problem != "" {
		b.add(fantasy.MessageRoleUser, []fantasy.MessagePart{fantasy.TextPart{Text: fmt.Sprintf(invalidOutput,
			clean(g.Output.Problem))}})
	}
}

// paused reports whether the message ends the history, and is a reply that the provider has paused.
func (b *builder) paused(i int) bool {
	return i == len(b.History)-1 && continues(&b.History[i], b.Dialect)
}

// withOwnCall adds a call of a tool that the provider ran itself. Where nothing is told of it, neither is the reasoning
// that led to it where a provider takes none without.
func (b *builder) withOwnCall(said, call []fantasy.MessagePart) []fantasy.MessagePart {
	if len(call) == 0 && b.Dialect.ReasoningLeads {
		return withoutLastReasoning(said)
	}
	return append(said, call...)
}

// withoutLastReasoning is the content up to the reasoning that it ends with.
func withoutLastReasoning(content []fantasy.MessagePart) []fantasy.MessagePart {
	for n := len(content); n > 0 && content[n-1].GetType() == fantasy.ContentTypeReasoning; n = len(content) {
		content = content[:n-1]
	}
	return content
}

// signed puts the mark before the first call, if the provider wants one and has not signed the call itself. What stands
// before a text signs the text.
func (b *builder) signed(content []fantasy.MessagePart) []fantasy.MessagePart {
	signed := b.Dialect.CallMark == nil
	for i, part := range content {
		switch part.GetType() {
		case fantasy.ContentTypeReasoning:
			signed = signed || part.Options() != nil
		case fantasy.ContentTypeText:
			signed = b.Dialect.CallMark == nil
		case fantasy.ContentTypeToolCall:
			if signed || part.Options() != nil {
				return content
			}
			return slices.Insert(content, i, fantasy.MessagePart(fantasy.ReasoningPart{ProviderOptions: b.Dialect.CallMark}))
		}
	}
	return content
}

// wrote reports whether the provider can read the message back as its own. Of a message that does not say who wrote it,
// the metadata tell.
func (d Dialect) wrote(m *v1alpha1.ChatMessage) bool {
	g := m.Spec.Generation
	if g == nil || g.Model == nil {
		return true
	}
	return Origin(v1alpha1.ModelProvider(g.Model.Provider), g.Model.Name) == d.Origin
}

// spoken is text or reasoning; none if it says nothing. Another provider's reasoning is not told: it is signed for that
// one, and would be this model's own words.
func (b *builder) spoken(part *v1alpha1.MessagePart, own bool) []fantasy.MessagePart {
	if part.Text == nil {
		return nil
	}
	text := clean(*part.Text)
	switch part.Type {
	case v1alpha1.PartText:
		options := b.options(part, own)
		switch {
		case blank(text):
		case b.Dialect.TextsSigned && options != nil:
			return []fantasy.MessagePart{fantasy.ReasoningPart{ProviderOptions: options}, fantasy.TextPart{Text: text}}
		default:
			return []fantasy.MessagePart{fantasy.TextPart{Text: text, ProviderOptions: options}}
		}
	case v1alpha1.PartReasoning:
		// What was signed is given back as it was, blank or not.
		if options := b.options(part, own); own && (options != nil || !blank(text)) {
			return []fantasy.MessagePart{fantasy.ReasoningPart{Text: text, ProviderOptions: options}}
		}
	}
	return nil
}

// pausedCall is a call of a provider's own tool that has no result, because the provider has paused the reply; none
// otherwise.
func (b *builder) pausedCall(at place, call fantasy.ToolCallPart) []fantasy.MessagePart {
	if b.paused(at.message) && b.Dialect.Replays != nil && b.Dialect.Replays(call, nil) {
		return []fantasy.MessagePart{call}
	}
	return nil
}

// ownCall is a call of a tool that a provider runs itself, with its result: as it was if this provider takes it back,
// else as text, and nothing if the tool said nothing.
func (b *builder) ownCall(at place, part *v1alpha1.MessagePart, own bool) []fantasy.MessagePart {
	result := b.paired.own[at]
	call := fantasy.ToolCallPart{
		ToolCallID: part.ToolCall.ID, ToolName: part.ToolCall.Name, Input: object(part.ToolCall.Input),
		ProviderExecuted: true, ProviderOptions: b.options(part, own),
	}
	if result == nil {
		return b.pausedCall(at, call)
	}
	answer := resultPart(call.ToolCallID, result.ToolResult)
	answer.ProviderExecuted, answer.ProviderOptions = true, b.options(result, own)
	// A provider's own id is no other one.
	same := b.paired.ids[at] == call.ToolCallID
	if own && same && b.Dialect.Replays != nil && b.Dialect.Replays(call, &answer) {
		return []fantasy.MessagePart{call, answer}
	}
	output := clean(cmp.Or(result.ToolResult.Output, found(b.History[at.message].Spec.Parts[at.part+1:], result)))
	if blank(output) {
		return nil
	}
	if b.ResultBytes > 0 {
		output = tools.Truncate(output, b.ResultBytes)
	}
	return []fantasy.MessagePart{fantasy.TextPart{Text: fmt.Sprintf("[Result of %s %s]\n%s", toolName(part.ToolCall.Name),
		call.Input, output)}}
}

// found are the sources that a search has found: those between its call and its result, which itself is sealed for the
// provider that has searched. Each is a stranger's word, and has one line.
func found(parts []v1alpha1.MessagePart, result *v1alpha1.MessagePart) string {
	var lines []string
	for i := range parts {
		if parts[i].ToolResult == result.ToolResult {
			break
		}
		if source := parts[i].Source; source != nil {
			lines = append(lines, strings.TrimSpace(printable.Line(source.Title+" "+source.URL)))
		}
	}
	return strings.Join(lines, "\n")
}

// orphans adds results whose calls are missing, such as before the context's start, with calls that stand for them.
func (b *builder) orphans(i int, m *v1alpha1.ChatMessage) {
	var calls, results []fantasy.MessagePart
	for j := range m.Spec.Parts {
		if id, ok := b.paired.ids[place{i, j}]; ok {
			r := m.Spec.Parts[j].ToolResult
			calls = append(calls, fantasy.ToolCallPart{ToolCallID: id, ToolName: toolName(r.Name), Input: "{}"})
			results = append(results, b.result(id, r))
		}
	}
	b.add(fantasy.MessageRoleAssistant, b.signed(calls))
	b.add(fantasy.MessageRoleTool, results)
}

// attached adds the files that came with results. Not every provider takes files in results, but each takes those of a
// user.
func (b *builder) attached(m *v1alpha1.ChatMessage) {
	var content []fantasy.MessagePart
	for i := range m.Spec.Parts {
		if file := m.Spec.Parts[i].File; file != nil {
			content = append(content, b.file(FileKey{m.Name, i}, file))
		}
	}
	b.add(fantasy.MessageRoleUser, content)
}

func toolName(name string) string {
	if name = validName(name, maxToolName); name != "" {
		return name
	}
	return "unknown_tool"
}

// result is a result of a tool that no provider ran, as far as the model is to read it.
func (b *builder) result(id string, r *v1alpha1.ToolResult) fantasy.ToolResultPart {
	if b.ResultBytes > 0 && len(r.Output) > b.ResultBytes {
		cut := *r
		cut.Output = tools.Truncate(r.Output, b.ResultBytes)
		r = &cut
	}
	return resultPart(id, r)
}

// resultPart is a result.
func resultPart(id string, r *v1alpha1.ToolResult) fantasy.ToolResultPart {
	part := fantasy.ToolResultPart{ToolCallID: id}
	output := clean(r.Output)
	if blank(output) {
		output = nothing
	}
	if r.IsError {
		part.Output = fantasy.ToolResultOutputContentError{Error: errors.New(output)}
	} else {
		part.Output = fantasy.ToolResultOutputContentText{Text: output}
	}
	return part
}

// options are the metadata that the provider gave with a part of its own. What cannot be read is left out: it was
// another version's, and costs the model no more than some of its reasoning.
func (b *builder) options(part *v1alpha1.MessagePart, own bool) fantasy.ProviderOptions {
	if part.ProviderMetadata == "" || !own {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal([]byte(part.ProviderMetadata), &raw) != nil {
		return nil
	}
	options, err := fantasy.UnmarshalProviderOptions(raw)
	if err != nil || b.Dialect.Reads == nil || !b.Dialect.Reads(options) {
		return nil
	}
	return options
}
