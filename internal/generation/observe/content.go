// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/internal/clip"
)

// Bounds of the content in a span, where it was asked for: characters of one part, and bytes of all input. The newest
// messages are kept.
const (
	maxContentText  = 8192
	maxContentInput = 64 << 10
)

// spokenMessage and spokenPart are a message as the GenAI conventions write it.
type spokenMessage struct {
	Role         string       `json:"role"`
	Parts        []spokenPart `json:"parts"`
	FinishReason string       `json:"finish_reason,omitempty"`
}

type spokenPart struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// promptAttributes write a prompt down: the instructions of the system, and the conversation.
func promptAttributes(prompt []fantasy.Message) (instructions, conversation string) {
	system, said, size := []spokenPart{}, []spokenMessage{}, 0
	for i := range slices.Backward(prompt) {
		m := spokenMessage{Role: string(prompt[i].Role)}
		for _, part := range prompt[i].Content {
			if p, ok := spoken(part); ok {
				m.Parts = append(m.Parts, p)
				size += len(p.Content) + len(p.Arguments) + len(p.Response)
			}
		}
		switch {
		case prompt[i].Role == fantasy.MessageRoleSystem:
			system = append(m.Parts, system...)
		case size <= maxContentInput:
			said = append(said, m)
		}
	}
	slices.Reverse(said)
	return written(system), written(said)
}

// spoken is a part of a prompt. Files are left out.
func spoken(part fantasy.MessagePart) (p spokenPart, ok bool) {
	switch part := part.(type) {
	case fantasy.TextPart:
		return spokenPart{Type: "text", Content: clip.Ellipsis(part.Text, maxContentText)}, true
	case fantasy.ReasoningPart:
		return spokenPart{Type: "reasoning", Content: clip.Ellipsis(part.Text, maxContentText)}, true
	case fantasy.ToolCallPart:
		return spokenCall(part.ToolCallID, part.ToolName, part.Input), true
	case fantasy.ToolResultPart:
		return spokenPart{Type: "tool_call_response", ID: part.ToolCallID, Response: resultText(part.Output)}, true
	}
	return p, false
}

func spokenCall(id, name, arguments string) spokenPart {
	return spokenPart{Type: "tool_call", ID: id, Name: name, Arguments: clip.Ellipsis(arguments, maxContentText)}
}

func resultText(output fantasy.ToolResultOutputContent) string {
	switch output := output.(type) {
	case fantasy.ToolResultOutputContentText:
		return clip.Ellipsis(output.Text, maxContentText)
	case fantasy.ToolResultOutputContentError:
		if output.Error != nil {
			return clip.Ellipsis(output.Error.Error(), maxContentText)
		}
	}
	return ""
}

func written(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // It holds strings only.
		return ""
	}
	return string(raw)
}

// saidSoFar collects what a model says.
type saidSoFar struct {
	text, reasoning strings.Builder
	calls           []spokenPart
}

func (s *saidSoFar) add(p *fantasy.StreamPart) {
	switch p.Type {
	case fantasy.StreamPartTypeTextDelta:
		grow(&s.text, p.Delta)
	case fantasy.StreamPartTypeReasoningDelta:
		grow(&s.reasoning, p.Delta)
	case fantasy.StreamPartTypeToolCall:
		s.calls = append(s.calls, spokenCall(p.ID, p.ToolCallName, p.ToolCallInput))
	}
}

func grow(b *strings.Builder, text string) {
	if b.Len() < maxContentText {
		b.WriteString(text)
	}
}

func (s *saidSoFar) message(finish string) string {
	m := spokenMessage{Role: "assistant", FinishReason: finish, Parts: []spokenPart{}}
	if s.reasoning.Len() > 0 {
		m.Parts = append(m.Parts, spokenPart{Type: "reasoning", Content: clip.Ellipsis(s.reasoning.String(), maxContentText)})
	}
	if s.text.Len() > 0 {
		m.Parts = append(m.Parts, spokenPart{Type: "text", Content: clip.Ellipsis(s.text.String(), maxContentText)})
	}
	m.Parts = append(m.Parts, s.calls...)
	return written([]spokenMessage{m})
}
