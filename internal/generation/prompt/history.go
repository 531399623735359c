// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Flatten replaces each message that stands for an earlier conversation by the messages of that.
func Flatten(history []v1beta1.ChatMessage) (out []v1beta1.ChatMessage) {
	for i := range history {
		m := &history[i]
		if len(m.Spec.History) == 0 {
			out = append(out, *m)
		}
		for j := range m.Spec.History {
			out = append(out, prior(m, j))
		}
	}
	return out
}

// prior converts a message of an earlier conversation.
func prior(m *v1beta1.ChatMessage, j int) v1beta1.ChatMessage {
	said := &m.Spec.History[j]
	out := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: said.Role}}
	out.Name = fmt.Sprintf("%s/%d", m.Name, j) // The name identifies files; there is no such object.
	if j == 0 {
		out.Status.CallsCanceledReasonBefore = m.Status.CallsCanceledReasonBefore
	}
	add := func(part v1beta1.MessagePart) { out.Spec.Parts = append(out.Spec.Parts, part) }
	if said.Content != "" {
		add(v1beta1.MessagePart{Type: v1beta1.PartText, Text: &said.Content})
	}
	for i := range said.Files {
		f := &said.Files[i]
		add(v1beta1.MessagePart{Type: v1beta1.PartFile,
			File: &v1beta1.MessageFile{Name: f.Name, MediaType: f.MediaType, Data: f.Data}})
	}
	for i := range said.ToolCalls {
		call := &said.ToolCalls[i]
		add(v1beta1.MessagePart{Type: v1beta1.PartToolCall,
			ToolCall: &v1beta1.ToolCall{ID: call.ID, Name: call.Name, Input: call.Input}})
	}
	for i := range said.ToolResults {
		r := &said.ToolResults[i]
		add(v1beta1.MessagePart{Type: v1beta1.PartToolResult,
			ToolResult: &v1beta1.ToolResult{ID: r.ID, Name: r.Name, Output: r.Output, IsError: r.IsError}})
	}
	return out
}

// joinPaused joins paused replies with their continuations: the result of a provider's own call can be in the next one.
func joinPaused(history []v1beta1.ChatMessage, d Dialect) (out []v1beta1.ChatMessage) {
	for i := range history {
		last := len(out) - 1
		if last < 0 || !isPaused(&out[last], d) || history[i].Spec.Role != v1beta1.RoleAssistant || !d.wrote(&history[i]) {
			out = append(out, history[i])
			continue
		}
		out[last].Spec.Parts = slices.Concat(out[last].Spec.Parts, history[i].Spec.Parts)
		out[last].Spec.Generation = history[i].Spec.Generation
	}
	return out
}

// isPaused reports whether the provider has paused the reply and will continue it.
func isPaused(m *v1beta1.ChatMessage, d Dialect) bool {
	g := m.Spec.Generation
	return g != nil && g.ReplyOutcome == v1beta1.ReplyPaused && d.wrote(m)
}
