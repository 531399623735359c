// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prior reads earlier conversations, and converts each to the history of one message. It is pure.
package prior

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/turn"
)

// MaxBytes is the most bytes of a history in JSON: 1 MiB.
const MaxBytes = v1beta1.MaxContentBytes

// Conversation is an earlier conversation.
type Conversation struct {
	// Title is empty if there is none.
	Title string
	// Messages are in their order.
	Messages []v1beta1.PriorMessage
	// Left counts what Messages omit.
	Left Left
}

// Left counts what of a conversation is not sent to the model.
type Left struct {
	// Notes to people.
	Notes int
	// BeforeContext are messages before the context of the model.
	BeforeContext int
	// System are messages with instructions.
	System int
	// Files whose content is not in the conversation.
	Files int
	// Oldest are messages that do not fit.
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

// EndsWithReply reports whether the last message is of the model, so that it is not asked at once.
func (c *Conversation) EndsWithReply() bool {
	return c.Messages[len(c.Messages)-1].Role == v1beta1.RoleAssistant
}

// Fit fails if the conversation does not fit one message. With truncate it drops the oldest messages, if that helps.
func (c *Conversation) Fit(truncate bool) error {
	sizes, total, err := c.sizes()
	if err != nil {
		return err
	}
	tooLong := fmt.Errorf("the conversation has %d messages and %d bytes, but one message holds a history of %d and %d",
		len(c.Messages), total, v1beta1.MaxPriorMessages, MaxBytes)
	for i := range c.Messages {
		fits := len(c.Messages)-i <= v1beta1.MaxPriorMessages && total < MaxBytes
		if fits && (i == 0 || c.Messages[i].Role == v1beta1.RoleUser) {
			if i > 0 && !truncate {
				return fmt.Errorf("%w: --truncate leaves the oldest %d out", tooLong, i)
			}
			c.Messages = slices.Delete(c.Messages, 0, i)
			c.Left.Oldest += i
			return nil
		}
		total -= sizes[i]
	}
	return fmt.Errorf("%w, and what follows the last words of a User alone is more than that", tooLong)
}

// sizes returns the size of each message in JSON, and the sum.
func (c *Conversation) sizes() (sizes []int, total int, err error) {
	for i := range c.Messages {
		raw, err := json.Marshal(&c.Messages[i])
		if err != nil {
			return nil, 0, fmt.Errorf("measuring the conversation: %w", err)
		}
		sizes = append(sizes, len(raw)+1) // with the comma behind it
		total += sizes[i]
	}
	return sizes, total, nil
}

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
		c.Left.count(&read.Items[i])
	}
	return c, nil
}

func (l *Left) count(item *turn.Item) {
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

var roles = []v1beta1.MessageRole{v1beta1.RoleUser, v1beta1.RoleAssistant, v1beta1.RoleTool, v1beta1.RoleSystem}

// Header is the first line of an export.
type Header struct {
	Type      string            `json:"type"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       string            `json:"uid"`
	Labels    map[string]string `json:"labels,omitempty"`
	CreatedAt metav1.Time       `json:"createdAt"`
	Title     string            `json:"title,omitempty"`
	Model     string            `json:"model,omitempty"`
	Parent    string            `json:"parent,omitempty"`
	SubChats  []string          `json:"subChats,omitempty"`
	// Messages counts them, and ContextStart is the index of the first that the model sees.
	Messages     int64              `json:"messages"`
	ContextStart int64              `json:"contextStart,omitempty"`
	Usage        v1beta1.TokenUsage `json:"usage,omitzero"`
	Cost         []v1beta1.Cost     `json:"cost,omitempty"`
	// Error is why the last turn failed.
	Error *stream.Error `json:"error,omitempty"`
}

// Entry is a message, or a note before the message of that index.
type Entry struct {
	Type  string `json:"type"`
	Index int64  `json:"index"`
	stream.Message
}

func isHeader(line []byte) bool {
	var h Header
	return json.Unmarshal(line, &h) == nil && h.Type == TypeChat
}

// readExport reads the messages in the context of the model.
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

type exportReader struct {
	conversation Conversation
	// names maps the ids of calls to their tools, which a client's results do not repeat.
	names map[string]string
}

// message adds a message, or the earlier conversation in it.
func (r *exportReader) message(m *stream.Message) {
	for i := range m.History {
		r.add(m.History[i])
	}
	role := m.Role
	if role == v1beta1.RoleSystem { // Models get a summary as a message of the user.
		role = v1beta1.RoleUser
	}
	converted := v1beta1.PriorMessage{Role: role, Content: m.Content}
	for i := range m.Parts {
		part := &m.Parts[i]
		result := part.Type == v1beta1.PartToolResult && part.ToolResult != nil
		if next := v1beta1.RoleTool; role == v1beta1.RoleAssistant && result != (converted.Role == next) {
			// Results of a provider's own tools are within the reply.
			if !result {
				next = role
			}
			r.add(converted)
			converted = v1beta1.PriorMessage{Role: next}
		}
		r.part(&converted, part)
	}
	r.add(converted)
}

func (r *exportReader) part(converted *v1beta1.PriorMessage, part *v1beta1.MessagePart) {
	switch {
	case part.Type == v1beta1.PartText && part.Text != nil:
		converted.Content += *part.Text
	case part.ToolCall != nil:
		call := part.ToolCall
		r.names[call.ID] = call.Name
		converted.ToolCalls = append(converted.ToolCalls,
			v1beta1.PriorToolCall{ID: call.ID, Name: call.Name, Input: call.Input})
	case part.ToolResult != nil:
		result := part.ToolResult
		converted.ToolResults = append(converted.ToolResults, v1beta1.ToolResult{ID: result.ID,
			Name: cmp.Or(result.Name, r.names[result.ID]), Output: result.Output, IsError: result.IsError})
	case part.File != nil && part.File.Data != "":
		converted.Files = append(converted.Files, v1beta1.PriorFile{Name: part.File.Name, MediaType: part.File.MediaType,
			Data: part.File.Data})
	case part.File != nil:
		r.conversation.Left.Files++
		converted.Content += placeholder(part.File)
	}
}

// placeholder names a file whose content is not in the export.
func placeholder(f *v1beta1.MessageFile) string {
	if f.URL != "" {
		return "(" + f.Name + " at " + f.URL + ")"
	}
	return "(" + f.Name + ")"
}

// add adds a message, unless it is empty, as one with reasoning alone is.
func (r *exportReader) add(m v1beta1.PriorMessage) {
	if m.Content == "" && len(m.Files)+len(m.ToolCalls)+len(m.ToolResults) == 0 {
		return
	}
	r.conversation.Messages = append(r.conversation.Messages, m)
}
