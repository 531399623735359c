// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prior reads conversations that were led elsewhere, and makes of each the history of one message. It is pure.
package prior

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/turn"
)

// MaxBytes is the most of a history in JSON: 1 MiB. Its texts may have as many characters, and etcd takes it in any
// script.
const MaxBytes = v1alpha1.MaxContentBytes

// Conversation is what was said elsewhere.
type Conversation struct {
	// Title that it had; empty: none is known.
	Title string
	// Messages of it, oldest first.
	Messages []v1alpha1.PriorMessage
	// Left is what is no part of Messages.
	Left Left
}

// Left counts what of a conversation is not told the model.
type Left struct {
	// Notes to people.
	Notes int
	// BeforeContext are messages that the model did not see any more.
	BeforeContext int
	// System are messages that say how the model is to work.
	System int
	// Files whose content stands elsewhere: they are named alone.
	Files int
	// Oldest are messages that were too many.
	Oldest int
}

// Read reads an export (JSON Lines of kubectl chat export), or messages of OpenAI's Chat Completions: a list of them,
// or an object with messages.
func Read(raw []byte) (*Conversation, error) {
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff")))
	var c *Conversation
	var err error
	switch first, _, _ := bytes.Cut(raw, []byte("\n")); {
	case isHeader(first):
		c, err = readExport(raw)
	case len(raw) > 0 && (raw[0] == '[' || raw[0] == '{'):
		c, err = readCompletions(raw)
	default:
		err = errors.New("it is neither an export of kubectl chat export -o jsonl, nor messages of OpenAI's Chat " +
			"Completions in JSON")
	}
	switch {
	case err != nil:
		return nil, err
	case len(c.Messages) == 0:
		return nil, errors.New("there is no message in it that a model could be told")
	}
	return c, nil
}

// EndsWithReply reports whether the model has said the last word, so that it is not asked at once.
func (c *Conversation) EndsWithReply() bool {
	return c.Messages[len(c.Messages)-1].Role == v1alpha1.RoleAssistant
}

// TooLongError means that a conversation does not fit one message.
type TooLongError struct {
	// Messages and Bytes are the conversation's.
	Messages, Bytes int
	// Oldest is how many messages must go for the rest to fit; 0 if that is not possible.
	Oldest int
}

func (e *TooLongError) Error() string {
	said := fmt.Sprintf("the conversation has %d messages and %d bytes, but one message holds a history of %d and %d",
		e.Messages, e.Bytes, v1alpha1.MaxPriorMessages, MaxBytes)
	if e.Oldest == 0 {
		return said + ", and what follows the last words of a User alone is more than that"
	}
	return said
}

// Fits fails with a *TooLongError for a conversation that does not fit one message.
func (c *Conversation) Fits() error {
	sizes := make([]int, len(c.Messages))
	total := 0
	for i := range c.Messages {
		raw, err := json.Marshal(&c.Messages[i])
		if err != nil {
			return fmt.Errorf("measuring the conversation: %w", err)
		}
		sizes[i] = len(raw) + 1 // with the comma behind it
		total += sizes[i]
	}
	if len(c.Messages) <= v1alpha1.MaxPriorMessages && total < MaxBytes {
		return nil
	}
	too := &TooLongError{Messages: len(c.Messages), Bytes: total}
	for i := range c.Messages {
		fits := len(c.Messages)-i <= v1alpha1.MaxPriorMessages && total < MaxBytes
		if fits && c.Messages[i].Role == v1alpha1.RoleUser {
			too.Oldest = i
			break
		}
		total -= sizes[i]
	}
	return too
}

// Truncate leaves the oldest messages out.
func (c *Conversation) Truncate(oldest int) {
	c.Messages = slices.Delete(c.Messages, 0, oldest)
	c.Left.Oldest += oldest
}

// readCompletions reads messages as clients of OpenAI's Chat Completions send them.
func readCompletions(raw []byte) (*Conversation, error) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
	}
	switch {
	case raw[0] == '[':
		body.Messages = raw
	case json.NewDecoder(bytes.NewReader(raw)).Decode(&body) != nil, len(body.Messages) == 0:
		return nil, errors.New("it is JSON, but neither a list of messages nor an object with messages")
	case !json.Valid(raw):
		return nil, errors.New("it has several conversations: give one of them")
	}
	wrapped, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	read, err := completions.Read(wrapped)
	if err != nil {
		return nil, err
	}
	c := &Conversation{Messages: turn.Prior(read.Items)}
	for i := range read.Items {
		c.Left.leave(&read.Items[i])
	}
	return c, nil
}

// leave counts what of an item is no part of a history.
func (l *Left) leave(item *turn.Item) {
	if item.Kind == turn.System {
		l.System++
	}
	for i := range item.Parts {
		if f := item.Parts[i].File; f != nil && f.Data == "" {
			l.Files++
		}
	}
}

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
