// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/compose"
)

const (
	// temporarySeconds is the retention of a temporary chat at rest: an hour.
	temporarySeconds int32 = 3600
	// threadSeconds is the retention of the chat of a client's thread: a week.
	threadSeconds int32 = 7 * 24 * 3600
	// actionSeconds is how long calls wait for the client: an hour, since a person may have to allow one.
	actionSeconds int32 = 3600
)

// ClassPrefix begins the names of models that are ChatClasses.
const ClassPrefix = "class/"

// NewChat is the chat that a request creates.
func (r *Request) NewChat(name string) *v1beta1.Chat {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name,
		Labels: map[string]string{LabelProtocol: ProtocolOpenAI}}}
	chat.Spec.SystemPrompt = r.News().Instructions
	if class, ok := strings.CutPrefix(r.Model, ClassPrefix); ok {
		chat.Spec.ChatClassName = class
	} else if r.Model != "" {
		chat.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: r.Model}
	}
	if len(r.Tools) > 0 {
		chat.Spec.Tools = &v1beta1.ChatTools{Client: r.Tools}
		chat.Spec.Limits = &v1beta1.ChatLimits{ActionDeadlineSeconds: new(actionSeconds)}
	}
	switch {
	case r.Chat != "":
	case r.Thread != "":
		chat.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(threadSeconds)}
	case r.Temporary:
		chat.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(temporarySeconds)}
	}
	return chat
}

// Change is a merge patch that gives a chat the tools of a request, and its instructions if a client of these protocols
// created the chat; nil if the chat has them.
func (r *Request) Change(chat *v1beta1.Chat) map[string]any {
	spec := map[string]any{}
	var has []v1beta1.ClientTool
	if chat.Spec.Tools != nil {
		has = chat.Spec.Tools.Client
	}
	ours := chat.Labels[LabelProtocol] != ""
	if (len(r.Tools) > 0 || r.Tools != nil && ours) && !sameTools(has, r.Tools) {
		spec["tools"] = map[string]any{"client": r.Tools}
	}
	instructions := r.News().Instructions
	if ours && instructions != "" && instructions != chat.Spec.SystemPrompt {
		spec["systemPrompt"] = instructions
	}
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"metadata": map[string]any{"resourceVersion": chat.ResourceVersion}, "spec": spec}
}

func sameTools(a, b []v1beta1.ClientTool) bool {
	return slices.EqualFunc(a, b, func(x, y v1beta1.ClientTool) bool {
		return x.Name == y.Name && x.Description == y.Description && sameSchema(x, y)
	})
}

func sameSchema(x, y v1beta1.ClientTool) bool {
	if x.InputSchema == nil || y.InputSchema == nil {
		return x.InputSchema == y.InputSchema
	}
	return sameJSON(x.InputSchema, y.InputSchema)
}

// Message is the message of a request to a chat, or the results of calls.
func (r *Request) Message(chat *v1beta1.Chat, name, hash string) *v1beta1.ChatMessage {
	n := r.News()
	var m *v1beta1.ChatMessage
	switch {
	case r.BringsHistory(chat):
		spec := r.spec()
		spec.History = Prior(r.Items)
		m = compose.Message(r.Namespace, chat.Name, name, spec)
	case len(n.Results) > 0:
		m = compose.Results(r.Namespace, chat.Name, name, n.ResultsFor(chat))
	default:
		m = compose.Message(r.Namespace, chat.Name, name, r.userMessage(chat, n))
	}
	m.Labels = map[string]string{LabelRequest: hash}
	if len(r.Metadata) > 0 {
		metadata, _ := json.Marshal(r.Metadata) // Texts always have a JSON.
		m.Annotations = map[string]string{AnnotationMetadata: string(metadata)}
	}
	return m
}

// MetadataOf is the metadata of the request that created a message.
func MetadataOf(m *v1beta1.ChatMessage) (metadata map[string]string) {
	_ = json.Unmarshal([]byte(m.Annotations[AnnotationMetadata]), &metadata) // Others may have written it.
	return metadata
}

// ModelOf is the name that clients have for the model that answers a message.
func ModelOf(chat *v1beta1.Chat, m *v1beta1.ChatMessage) string {
	switch {
	case m.Spec.ModelConfigRef != nil:
		return m.Spec.ModelConfigRef.Name
	case chat.Spec.ModelConfigRef != nil:
		return chat.Spec.ModelConfigRef.Name
	case chat.Spec.ChatClassName != "":
		return ClassPrefix + chat.Spec.ChatClassName
	}
	return chat.Status.Model
}

func (r *Request) userMessage(chat *v1beta1.Chat, n News) v1beta1.ChatMessageSpec {
	spec := r.spec()
	if len(n.Parts) == 1 && n.Parts[0].Text != nil {
		spec.Content = *n.Parts[0].Text
	} else {
		spec.Parts = n.Parts
	}
	// A client that continues without pending results will not send them. A client with its own thread has abandoned the
	// running turn.
	if len(r.results) > 0 || len(PendingCalls(chat)) > 0 || r.Thread != "" && isRunning(chat) {
		spec.WhenBusy = v1beta1.WhenBusyInterrupt
	}
	return spec
}

func isRunning(chat *v1beta1.Chat) bool {
	return chat.Status.Turn != nil && chat.Status.Turn.Result == ""
}

// PendingCalls are the ids of the calls that wait for a client.
func PendingCalls(chat *v1beta1.Chat) (ids []string) {
	if chat.Status.RequiresAction == nil {
		return nil
	}
	for _, call := range chat.Status.RequiresAction.ToolCalls {
		if call.Kind == v1beta1.RequiresClient {
			ids = append(ids, call.ID)
		}
	}
	return ids
}

// ClientTools are the names of the tools that a client of the chat runs.
func ClientTools(chat *v1beta1.Chat) (names []string) {
	if chat.Spec.Tools == nil {
		return nil
	}
	for _, tool := range chat.Spec.Tools.Client {
		names = append(names, tool.Name)
	}
	return names
}

// BringsHistory reports whether the chat begins with the conversation that the client resends, because it is empty.
func (r *Request) BringsHistory(chat *v1beta1.Chat) bool {
	return r.News().Resent && chat.Status.History.Length == 0 && len(chat.Status.Queue) == 0
}

// Prior is a conversation as the history of one message. System items are omitted.
func Prior(items []Item) []v1beta1.PriorMessage {
	var p prior
	for i := range items {
		p.add(&items[i])
	}
	return p.messages
}

// prior converts items to messages.
type prior struct {
	messages []v1beta1.PriorMessage
	names    map[string]string // of the tools of calls, by the id of the call
}

// last is the last message if it has the role, or else a new one.
func (p *prior) last(role v1beta1.MessageRole) *v1beta1.PriorMessage {
	if n := len(p.messages); n == 0 || p.messages[n-1].Role != role {
		p.messages = append(p.messages, v1beta1.PriorMessage{Role: role})
	}
	return &p.messages[len(p.messages)-1]
}

func (p *prior) add(item *Item) {
	switch item.Kind {
	case User:
		m := p.last(v1beta1.RoleUser)
		for i := range item.Parts {
			addPart(m, &item.Parts[i])
		}
	case Reply:
		if item.Text != "" {
			m := p.last(v1beta1.RoleAssistant)
			m.Content = paragraphs(m.Content, item.Text)
		}
	case ToolCall:
		id := priorID(item.Call)
		if p.names == nil {
			p.names = map[string]string{}
		}
		p.names[id] = item.Name
		m := p.last(v1beta1.RoleAssistant)
		m.ToolCalls = append(m.ToolCalls, v1beta1.PriorToolCall{ID: id, Name: item.Name, Input: item.Input})
	case ToolResult:
		id := priorID(item.Call)
		m := p.last(v1beta1.RoleTool)
		m.ToolResults = append(m.ToolResults,
			v1beta1.ToolResult{ID: id, Name: p.names[id], Output: item.Text, IsError: item.IsError})
	}
}

// addPart adds a part of a message. Files of earlier messages are not fetched: a URL is only named.
func addPart(m *v1beta1.PriorMessage, part *v1beta1.MessagePart) {
	switch f := part.File; {
	case part.Text != nil:
		m.Content = paragraphs(m.Content, *part.Text)
	case f != nil && f.Data != "":
		m.Files = append(m.Files, v1beta1.PriorFile{Name: f.Name, MediaType: f.MediaType, Data: f.Data})
	case f != nil:
		m.Content = paragraphs(m.Content, "("+f.Name+" at "+f.URL+")")
	}
}

func paragraphs(before, text string) string {
	if before == "" {
		return text
	}
	return before + "\n\n" + text
}

// priorID is the id of a call in a history. One that is too long is hashed.
func priorID(call string) string {
	const longest = 128
	if len(call) > longest {
		return Hash(call)
	}
	return call
}
