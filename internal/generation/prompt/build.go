// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prompt turns a chat's history into what a provider reads. It is pure. Whatever the history looks like, the
// prompt obeys what every provider demands: each tool call is answered, each result answers a call, no part is empty.
package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// unanswered is what the model reads in place of a result that never came.
const unanswered = "This call has no result: it was cancelled, interrupted or not answered in time."

// Build returns the prompt: the system prompt, then the history, oldest message first.
func Build(systemPrompt string, history []v1alpha1.ChatMessage) ([]fantasy.Message, error) {
	b := &builder{open: map[string]bool{}}
	if systemPrompt != "" {
		b.add(fantasy.MessageRoleSystem, fantasy.TextPart{Text: systemPrompt})
	}
	for i := range history {
		if err := b.message(&history[i]); err != nil {
			return nil, fmt.Errorf("message %s: %w", history[i].Name, err)
		}
	}
	b.answerOpen()
	return b.messages, nil
}

type builder struct {
	messages []fantasy.Message
	// open are the calls of the last Assistant message that have no result yet, in order.
	open  map[string]bool
	order []string
	// paired are the calls of that message that the provider both made and answered itself.
	paired map[string]bool
}

func pairs(m *v1alpha1.ChatMessage) map[string]bool {
	calls, paired := map[string]bool{}, map[string]bool{}
	for i := range m.Spec.Parts {
		if c := m.Spec.Parts[i].ToolCall; c != nil && c.ProviderExecuted {
			calls[c.ID] = true
		}
		if r := m.Spec.Parts[i].ToolResult; r != nil && r.ProviderExecuted && calls[r.ID] {
			paired[r.ID] = true
		}
	}
	return paired
}

// validID is the id in the characters that every provider takes. Generated messages have no others; this is for messages
// that came about in another way.
func validID(id string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, id)
}

// add adds a message. Results that came in several messages go into one: some providers want the results of all calls of a
// reply together.
func (b *builder) add(role fantasy.MessageRole, content ...fantasy.MessagePart) {
	if n := len(b.messages); n > 0 && role == fantasy.MessageRoleTool && b.messages[n-1].Role == role {
		b.messages[n-1].Content = append(b.messages[n-1].Content, content...)
		return
	}
	if len(content) > 0 {
		b.messages = append(b.messages, fantasy.Message{Role: role, Content: content})
	}
}

func (b *builder) message(m *v1alpha1.ChatMessage) error {
	switch m.Spec.Role {
	case v1alpha1.RoleAssistant:
		b.answerOpen()
		return b.assistant(m)
	case v1alpha1.RoleTool:
		b.results(m)
	default:
		b.answerOpen()
		b.user(m)
	}
	return nil
}

func (b *builder) user(m *v1alpha1.ChatMessage) {
	if m.Spec.Content != "" {
		b.add(fantasy.MessageRoleUser, fantasy.TextPart{Text: m.Spec.Content})
		return
	}
	var content []fantasy.MessagePart
	for _, part := range m.Spec.Parts {
		if part.Text != nil && *part.Text != "" {
			content = append(content, fantasy.TextPart{Text: *part.Text})
		}
	}
	b.add(fantasy.MessageRoleUser, content...)
}

func (b *builder) assistant(m *v1alpha1.ChatMessage) error {
	var content []fantasy.MessagePart
	b.paired = pairs(m)
	for i := range m.Spec.Parts {
		options, err := optionsOf(&m.Spec.Parts[i])
		if err != nil {
			return err
		}
		if part := b.said(&m.Spec.Parts[i], options); part != nil {
			content = append(content, part)
		}
	}
	b.add(fantasy.MessageRoleAssistant, content...)
	return nil
}

// said is a part of an Assistant message as the provider reads it; nil if it says nothing.
func (b *builder) said(part *v1alpha1.MessagePart, options fantasy.ProviderOptions) fantasy.MessagePart {
	switch {
	case part.Text != nil:
		return spoken(part, options)
	case part.ToolCall != nil:
		return b.call(part.ToolCall, options)
	case part.ToolResult != nil && b.paired[part.ToolResult.ID]:
		return result(part.ToolResult, options)
	}
	return nil
}

func spoken(part *v1alpha1.MessagePart, options fantasy.ProviderOptions) fantasy.MessagePart {
	switch {
	case part.Type == v1alpha1.PartText && *part.Text != "":
		return fantasy.TextPart{Text: *part.Text, ProviderOptions: options}
	case part.Type == v1alpha1.PartReasoning && (*part.Text != "" || options != nil):
		return fantasy.ReasoningPart{Text: *part.Text, ProviderOptions: options}
	}
	return nil
}

// call opens a call. One of the provider's own that the provider did not answer is left out: nobody else could.
func (b *builder) call(call *v1alpha1.ToolCall, options fantasy.ProviderOptions) fantasy.MessagePart {
	if call.ProviderExecuted && !b.paired[call.ID] {
		return nil
	}
	if !call.ProviderExecuted {
		b.open[call.ID] = true
		b.order = append(b.order, call.ID)
	}
	input := call.Input
	if input == "" {
		input = "{}"
	}
	return fantasy.ToolCallPart{
		ToolCallID: validID(call.ID), ToolName: call.Name, Input: input, ProviderExecuted: call.ProviderExecuted, ProviderOptions: options,
	}
}

// results adds the results of open calls; a result of no call is left out.
func (b *builder) results(m *v1alpha1.ChatMessage) {
	var content []fantasy.MessagePart
	for i := range m.Spec.Parts {
		r := m.Spec.Parts[i].ToolResult
		if r == nil || !b.open[r.ID] {
			continue
		}
		delete(b.open, r.ID)
		content = append(content, result(r, nil))
	}
	b.add(fantasy.MessageRoleTool, content...)
}

// answerOpen answers the calls that have no result, before another message comes between.
func (b *builder) answerOpen() {
	var content []fantasy.MessagePart
	for _, id := range b.order {
		if b.open[id] {
			content = append(content, result(&v1alpha1.ToolResult{ID: id, Output: unanswered, IsError: true}, nil))
		}
	}
	b.order, b.open = nil, map[string]bool{}
	b.add(fantasy.MessageRoleTool, content...)
}

func result(r *v1alpha1.ToolResult, options fantasy.ProviderOptions) fantasy.ToolResultPart {
	part := fantasy.ToolResultPart{ToolCallID: validID(r.ID), ProviderExecuted: r.ProviderExecuted, ProviderOptions: options}
	if r.IsError {
		part.Output = fantasy.ToolResultOutputContentError{Error: errors.New(r.Output)}
	} else {
		part.Output = fantasy.ToolResultOutputContentText{Text: r.Output}
	}
	return part
}

// optionsOf reads back the metadata that the provider gave with a part.
func optionsOf(part *v1alpha1.MessagePart) (fantasy.ProviderOptions, error) {
	if part.ProviderMetadata == "" {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(part.ProviderMetadata), &raw); err != nil {
		return nil, fmt.Errorf("reading the provider's metadata: %w", err)
	}
	options, err := fantasy.UnmarshalProviderOptions(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the provider's metadata: %w", err)
	}
	return options, nil
}
