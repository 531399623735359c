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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
)

const (
	// noOutput replaces an empty result: providers refuse empty texts.
	noOutput = "(no output)"
	// maxToolName is the longest name that every provider takes.
	maxToolName = 64
)

// builder converts a history, message by message.
type builder struct {
	Input
	paired   *pairing
	files    map[FileKey]File
	messages []fantasy.Message
}

// add adds a message, unless it is empty. Providers refuse one that ends with reasoning.
func (b *builder) add(role fantasy.MessageRole, content []fantasy.MessagePart) {
	if content = withoutLastReasoning(content); len(content) > 0 {
		b.messages = append(b.messages, message(role, content...))
	}
}

func (b *builder) message(i int, m *v1beta1.ChatMessage) {
	switch m.Spec.Role {
	case v1beta1.RoleAssistant:
		b.assistant(i, m)
	case v1beta1.RoleTool:
		b.orphans(i, m)
		b.attached(m)
	default:
		b.user(m)
	}
}

func (b *builder) user(m *v1beta1.ChatMessage) {
	if m.Spec.IsNote() { // A note is for people. No history has one, but the model must never read it.
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
		case part.Type == v1beta1.PartText && part.Text != nil:
			add(*part.Text)
		}
	}
	b.add(fantasy.MessageRoleUser, content)
}

// assistant adds a reply, and the results of its calls right after it.
func (b *builder) assistant(i int, m *v1beta1.ChatMessage) {
	var reply, results []fantasy.MessagePart
	own := b.Dialect.wrote(m)
	for j := range m.Spec.Parts {
		part := &m.Spec.Parts[j]
		switch call := part.ToolCall; {
		case call == nil:
			reply = append(reply, b.textOrReasoning(part, own)...)
		case call.ProviderExecuted:
			reply = b.withOwnCall(reply, b.ownCall(place{i, j}, part, own))
		default:
			id := b.paired.ids[place{i, j}]
			reply = append(reply, fantasy.ToolCallPart{ToolCallID: id, ToolName: toolName(call.Name), Input: object(call.Input),
				ProviderOptions: b.options(part, own)})
			results = append(results, b.result(id, b.answer(place{i, j})))
		}
	}
	if b.Dialect.JoinTexts {
		reply = joinTexts(reply)
	}
	if b.endsPaused(i) && len(reply) > 0 { // It goes back unchanged, also if it ends with reasoning.
		b.messages = append(b.messages, message(fantasy.MessageRoleAssistant, reply...))
		return
	}
	b.add(fantasy.MessageRoleAssistant, b.signed(reply))
	b.add(fantasy.MessageRoleTool, results)
	b.correct(m)
}

// withOwnCall adds a provider's own call. If it is omitted, so is the reasoning that led to it, where that matters.
func (b *builder) withOwnCall(reply, call []fantasy.MessagePart) []fantasy.MessagePart {
	if len(call) == 0 && b.Dialect.ReasoningLeads {
		return withoutLastReasoning(reply)
	}
	return append(reply, call...)
}

// correct tells the model what is wrong with an invalid output.
func (b *builder) correct(m *v1beta1.ChatMessage) {
	if g := m.Spec.Generation; g != nil && g.Output != nil && g.Output.Problem != "" {
		b.add(fantasy.MessageRoleUser, []fantasy.MessagePart{fantasy.TextPart{Text: fmt.Sprintf(invalidOutput,
			clean(g.Output.Problem))}})
	}
}

// endsPaused reports whether the message ends the history with a paused reply.
func (b *builder) endsPaused(i int) bool {
	return i == len(b.History)-1 && isPaused(&b.History[i], b.Dialect)
}

// withoutLastReasoning removes the reasoning at the end.
func withoutLastReasoning(content []fantasy.MessagePart) []fantasy.MessagePart {
	for n := len(content); n > 0 && content[n-1].GetType() == fantasy.ContentTypeReasoning; n = len(content) {
		content = content[:n-1]
	}
	return content
}

// signed puts the mark before the first call, if the provider requires one and has not signed the call. A signature
// before a text is the text's.
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

// wrote reports whether the provider can read the message back as its own. Without an author, the metadata decide.
func (d Dialect) wrote(m *v1beta1.ChatMessage) bool {
	g := m.Spec.Generation
	if g == nil || g.Model == nil {
		return true
	}
	return Origin(v1beta1.ModelProvider(g.Model.Provider), g.Model.Name) == d.Origin
}

// textOrReasoning converts text or reasoning; nothing if it is blank. Reasoning of another provider is omitted: its
// signature is not valid here, and this model would take it for its own.
func (b *builder) textOrReasoning(part *v1beta1.MessagePart, own bool) []fantasy.MessagePart {
	if part.Text == nil {
		return nil
	}
	text := clean(*part.Text)
	switch part.Type {
	case v1beta1.PartText:
		options := b.options(part, own)
		switch {
		case blank(text):
		case b.Dialect.TextsSigned && options != nil:
			return []fantasy.MessagePart{fantasy.ReasoningPart{ProviderOptions: options}, fantasy.TextPart{Text: text}}
		default:
			return []fantasy.MessagePart{fantasy.TextPart{Text: text, ProviderOptions: options}}
		}
	case v1beta1.PartReasoning:
		// Signed reasoning goes back unchanged, also if it is blank.
		if options := b.options(part, own); own && (options != nil || !blank(text)) {
			return []fantasy.MessagePart{fantasy.ReasoningPart{Text: text, ProviderOptions: options}}
		}
	}
	return nil
}

// ownCall converts a call of a provider's own tool with its result: unchanged if this provider takes it back, else to a
// text, or to nothing if the result is blank. A call without a result remains in a paused reply only.
func (b *builder) ownCall(at place, part *v1beta1.MessagePart, own bool) []fantasy.MessagePart {
	result, replays := b.paired.own[at], b.Dialect.Replays
	call := fantasy.ToolCallPart{
		ToolCallID: part.ToolCall.ID, ToolName: part.ToolCall.Name, Input: object(part.ToolCall.Input),
		ProviderExecuted: true, ProviderOptions: b.options(part, own),
	}
	if result == nil {
		if b.endsPaused(at.message) && replays != nil && replays(call, nil) {
			return []fantasy.MessagePart{call}
		}
		return nil
	}
	answer := resultPart(call.ToolCallID, result.ToolResult)
	answer.ProviderExecuted, answer.ProviderOptions = true, b.options(result, own)
	keepsID := b.paired.ids[at] == call.ToolCallID
	if own && keepsID && replays != nil && replays(call, &answer) {
		return []fantasy.MessagePart{call, answer}
	}
	output := clean(cmp.Or(result.ToolResult.Output, sourcesBefore(b.History[at.message].Spec.Parts[at.part+1:], result)))
	if blank(output) {
		return nil
	}
	return []fantasy.MessagePart{fantasy.TextPart{Text: fmt.Sprintf("[Result of %s %s]\n%s", toolName(part.ToolCall.Name),
		call.Input, b.truncate(output))}}
}

// sourcesBefore are the sources between the call of a search and its result, which only its provider can decrypt. They
// are untrusted, and have one line each.
func sourcesBefore(parts []v1beta1.MessagePart, result *v1beta1.MessagePart) string {
	var lines []string
	for _, part := range parts {
		if part.ToolResult == result.ToolResult {
			break
		}
		if part.Source != nil {
			lines = append(lines, strings.TrimSpace(printable.Line(part.Source.Title+" "+part.Source.URL)))
		}
	}
	return strings.Join(lines, "\n")
}

// orphans adds results whose calls are missing, with replacements of the calls.
func (b *builder) orphans(i int, m *v1beta1.ChatMessage) {
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

// attached adds the files of results as a User message: not every provider takes files in results.
func (b *builder) attached(m *v1beta1.ChatMessage) {
	var content []fantasy.MessagePart
	for i := range m.Spec.Parts {
		if file := m.Spec.Parts[i].File; file != nil {
			content = append(content, b.file(FileKey{m.Name, i}, file))
		}
	}
	b.add(fantasy.MessageRoleUser, content)
}

func toolName(name string) string { return cmp.Or(ValidName(name, maxToolName), "unknown_tool") }

// result converts a result of a tool that no provider ran.
func (b *builder) result(id string, r *v1beta1.ToolResult) fantasy.ToolResultPart {
	return resultPart(id, &v1beta1.ToolResult{Output: b.truncate(r.Output), IsError: r.IsError})
}

// truncate cuts an output to the limit of the model.
func (b *builder) truncate(output string) string {
	if b.ResultBytes == 0 {
		return output
	}
	return tools.Truncate(output, b.ResultBytes)
}

func resultPart(id string, r *v1beta1.ToolResult) fantasy.ToolResultPart {
	part := fantasy.ToolResultPart{ToolCallID: id}
	output := clean(r.Output)
	if blank(output) {
		output = noOutput
	}
	if r.IsError {
		part.Output = fantasy.ToolResultOutputContentError{Error: errors.New(output)}
	} else {
		part.Output = fantasy.ToolResultOutputContentText{Text: output}
	}
	return part
}

// options are the provider's metadata of its own part. Unreadable ones are of another version, and are omitted: the
// model only loses some of its reasoning.
func (b *builder) options(part *v1beta1.MessagePart, own bool) fantasy.ProviderOptions {
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
