// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import "parley.dev/parley/api/v1alpha1"

// BringsHistory reports whether the chat is to begin with the conversation that the client resends: nothing was said in
// it yet.
func (r *Request) BringsHistory(chat *v1alpha1.Chat) bool {
	return r.News().Resent && chat.Status.History.Length == 0 && len(chat.Status.Queue) == 0
}

// prior is a message that stands for the whole conversation.
func (r *Request) prior() v1alpha1.ChatMessageSpec {
	spec := r.spec()
	spec.History = Prior(r.Items)
	return spec
}

// Prior is a conversation as one message has it that stands for it. What a system says is left out.
func Prior(items []Item) []v1alpha1.PriorMessage {
	var p prior
	for i := range items {
		p.add(&items[i])
	}
	return p.messages
}

// prior makes messages of items.
type prior struct {
	messages []v1alpha1.PriorMessage
	names    map[string]string // of what calls call, by the id
}

// of is the last message if it is of the role, or else a new one.
func (p *prior) of(role v1alpha1.MessageRole) *v1alpha1.PriorMessage {
	if n := len(p.messages); n == 0 || p.messages[n-1].Role != role {
		p.messages = append(p.messages, v1alpha1.PriorMessage{Role: role})
	}
	return &p.messages[len(p.messages)-1]
}

func (p *prior) add(item *Item) {
	switch item.Kind {
	case Said:
		m := p.of(v1alpha1.RoleUser)
		for i := range item.Parts {
			say(m, &item.Parts[i])
		}
	case Replied:
		if item.Text != "" {
			m := p.of(v1alpha1.RoleAssistant)
			m.Content = paragraphs(m.Content, item.Text)
		}
	case Called:
		id := priorID(item.Call)
		if p.names == nil {
			p.names = map[string]string{}
		}
		p.names[id] = item.Name
		m := p.of(v1alpha1.RoleAssistant)
		m.ToolCalls = append(m.ToolCalls, v1alpha1.PriorToolCall{ID: id, Name: item.Name, Input: item.Input})
	case Returned:
		id := priorID(item.Call)
		m := p.of(v1alpha1.RoleTool)
		m.ToolResults = append(m.ToolResults,
			v1alpha1.ToolResult{ID: id, Name: p.names[id], Output: item.Text, IsError: item.IsError})
	}
}

// say adds a part of what somebody says. A file that is elsewhere is named alone: what was said before is not fetched.
func say(m *v1alpha1.PriorMessage, part *v1alpha1.MessagePart) {
	switch f := part.File; {
	case part.Text != nil:
		m.Content = paragraphs(m.Content, *part.Text)
	case f != nil && f.Data != "":
		m.Files = append(m.Files, v1alpha1.PriorFile{Name: f.Name, MediaType: f.MediaType, Data: f.Data})
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

// priorID is the id of a call as a history has it: one that is too long there is hashed.
func priorID(call string) string {
	const longest = 128
	if len(call) > longest {
		return Hash(call)
	}
	return call
}
