// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prior

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// Types of the lines of an export.
const (
	TypeChat    = "chat"
	TypeMessage = "message"
	TypeNote    = "note"
)

// roles are those of the messages of a chat.
var roles = []v1alpha1.MessageRole{v1alpha1.RoleUser, v1alpha1.RoleAssistant, v1alpha1.RoleTool, v1alpha1.RoleSystem}

// Header is the first line of an export.
type Header struct {
	// Type is "chat".
	Type      string            `json:"type"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       string            `json:"uid"`
	Labels    map[string]string `json:"labels,omitempty"`
	CreatedAt metav1.Time       `json:"createdAt"`
	// Title and Model are the chat's by now.
	Title  string `json:"title,omitempty"`
	Model  string `json:"model,omitempty"`
	Parent string `json:"parent,omitempty"`
	// SubChats are the chats below it, by name.
	SubChats []string `json:"subChats,omitempty"`
	// Messages is how many there are, and ContextStart the index of the first that the model sees.
	Messages     int64               `json:"messages"`
	ContextStart int64               `json:"contextStart,omitempty"`
	Usage        v1alpha1.TokenUsage `json:"usage,omitzero"`
	Cost         []v1alpha1.Cost     `json:"cost,omitempty"`
	// Error is why the last turn failed.
	Error *stream.Error `json:"error,omitempty"`
}

// Entry is a message, or a note before the message of that index.
type Entry struct {
	// Type is "message" or "note".
	Type  string `json:"type"`
	Index int64  `json:"index"`
	stream.Message
}

func isHeader(line []byte) bool {
	var h Header
	return json.Unmarshal(line, &h) == nil && h.Type == TypeChat
}

// readExport takes what the model saw last: all from the beginning of its context on.
func readExport(raw []byte) (*Conversation, error) {
	var h Header
	r := exportReader{names: map[string]string{}}
	n := 0
	for line := range bytes.Lines(raw) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if n == 1 {
			_ = json.Unmarshal(line, &h) // It is a header.
			r.conversation.Title = h.Title
			continue
		}
		if isHeader(line) {
			return nil, fmt.Errorf("line %d begins a second chat: import one at a time", n)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d is no message of an export: %w", n, err)
		}
		switch {
		case e.Type == TypeNote:
			r.conversation.Left.Notes++
		case e.Type != TypeMessage:
			return nil, fmt.Errorf("line %d is of type %q: behind the chat, an export has messages and notes", n, e.Type)
		case e.Index < h.ContextStart:
			r.conversation.Left.BeforeContext++
		case !slices.Contains(roles, e.Role):
			return nil, fmt.Errorf("line %d is a message of role %q: it can be %v", n, e.Role, roles)
		default:
			r.message(&e.Message)
		}
	}
	return &r.conversation, nil
}

// exportReader makes messages of a history of those of an export.
type exportReader struct {
	conversation Conversation
	// names are those of the tools that were called, by the call's id: a client's results do not repeat them.
	names map[string]string
}

// message adds a message. An earlier conversation in it stands for itself.
func (r *exportReader) message(m *stream.Message) {
	for i := range m.History {
		r.add(m.History[i])
	}
	role := m.Role
	if role == v1alpha1.RoleSystem { // A model is told a summary as something that a User says.
		role = v1alpha1.RoleUser
	}
	said := v1alpha1.PriorMessage{Role: role, Content: m.Content}
	for i := range m.Parts {
		part := &m.Parts[i]
		result := part.Type == v1alpha1.PartToolResult && part.ToolResult != nil
		if next := v1alpha1.RoleTool; role == v1alpha1.RoleAssistant && result != (said.Role == next) {
			// Results that a provider brought itself stand among the words of the model.
			if !result {
				next = role
			}
			r.add(said)
			said = v1alpha1.PriorMessage{Role: next}
		}
		r.part(&said, part)
	}
	r.add(said)
}

func (r *exportReader) part(said *v1alpha1.PriorMessage, part *v1alpha1.MessagePart) {
	switch {
	case part.Type == v1alpha1.PartText && part.Text != nil:
		said.Content += *part.Text
	case part.ToolCall != nil:
		call := part.ToolCall
		r.names[call.ID] = call.Name
		said.ToolCalls = append(said.ToolCalls, v1alpha1.PriorToolCall{ID: call.ID, Name: call.Name, Input: call.Input})
	case part.ToolResult != nil:
		result := part.ToolResult
		name := result.Name
		if name == "" {
			name = r.names[result.ID]
		}
		said.ToolResults = append(said.ToolResults, v1alpha1.ToolResult{ID: result.ID, Name: name, Output: result.Output,
			IsError: result.IsError})
	case part.File != nil && part.File.Data != "":
		said.Files = append(said.Files, v1alpha1.PriorFile{Name: part.File.Name, MediaType: part.File.MediaType,
			Data: part.File.Data})
	case part.File != nil:
		r.conversation.Left.Files++
		said.Content += elsewhere(part.File)
	}
}

// elsewhere names a file whose content is not in the export: what was said before is not fetched.
func elsewhere(f *v1alpha1.MessageFile) string {
	if f.URL != "" {
		return "(" + f.Name + " at " + f.URL + ")"
	}
	return "(" + f.Name + ")"
}

// add adds a message that says something: of one that was only reasoning, nothing is told.
func (r *exportReader) add(m v1alpha1.PriorMessage) {
	if m.Content == "" && len(m.Files)+len(m.ToolCalls)+len(m.ToolResults) == 0 {
		return
	}
	r.conversation.Messages = append(r.conversation.Messages, m)
}
