// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// told is the history with each message that stands for an earlier conversation replaced by the messages of that.
func told(history []v1alpha1.ChatMessage) []v1alpha1.ChatMessage {
	var out []v1alpha1.ChatMessage
	for i := range history {
		m := &history[i]
		if len(m.Spec.History) == 0 {
			if out != nil {
				out = append(out, *m)
			}
			continue
		}
		if out == nil {
			out = append(make([]v1alpha1.ChatMessage, 0, len(history)+len(m.Spec.History)), history[:i]...)
		}
		for j := range m.Spec.History {
			out = append(out, prior(m, j))
		}
	}
	if out == nil { // Most histories have no such message.
		return history
	}
	return out
}

// prior is one message of an earlier conversation as a message of this one. Nobody's model wrote it: it holds nothing
// that a provider would read back as its own.
func prior(m *v1alpha1.ChatMessage, j int) v1alpha1.ChatMessage {
	said := &m.Spec.History[j]
	out := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: said.Role}}
	out.Name = fmt.Sprintf("%s/%d", m.Name, j) // Files are found by it; it is no object's.
	if j == 0 {
		out.Status.CallsGivenUpBefore = m.Status.CallsGivenUpBefore
	}
	add := func(part v1alpha1.MessagePart) { out.Spec.Parts = append(out.Spec.Parts, part) }
	if said.Content != "" {
		add(v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: &said.Content})
	}
	for i := range said.Files {
		f := &said.Files[i]
		add(v1alpha1.MessagePart{Type: v1alpha1.PartFile,
			File: &v1alpha1.MessageFile{Name: f.Name, MediaType: f.MediaType, Data: f.Data}})
	}
	for i := range said.ToolCalls {
		call := &said.ToolCalls[i]
		add(v1alpha1.MessagePart{Type: v1alpha1.PartToolCall,
			ToolCall: &v1alpha1.ToolCall{ID: call.ID, Name: call.Name, Input: call.Input}})
	}
	for i := range said.ToolResults {
		r := &said.ToolResults[i]
		add(v1alpha1.MessagePart{Type: v1alpha1.PartToolResult,
			ToolResult: &v1alpha1.ToolResult{ID: r.ID, Name: r.Name, Output: r.Output, IsError: r.IsError}})
	}
	return out
}
