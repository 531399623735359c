// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"container/list"
	"sync"

	"parley.dev/parley/api/v1alpha1"
)

// kept holds the histories that were used last, within limits of their number and size.
type kept struct {
	mu       sync.Mutex
	maxChats int
	maxBytes int
	bytes    int
	order    *list.List // of *entry, the one used last in front
	entries  map[string]*list.Element
}

type entry struct {
	chat     string
	messages []v1alpha1.ChatMessage
	bytes    int
}

func newKept(maxChats, maxBytes int) *kept {
	return &kept{maxChats: maxChats, maxBytes: maxBytes, order: list.New(), entries: map[string]*list.Element{}}
}

// get returns what is kept of a chat. The caller may not change it.
func (k *kept) get(chat string) []v1alpha1.ChatMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[chat]
	if !ok {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*entry).messages
}

func (k *kept) put(chat string, messages []v1alpha1.ChatMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(chat)
	e := &entry{chat: chat, messages: messages, bytes: sizeOf(messages)}
	k.entries[chat] = k.order.PushFront(e)
	k.bytes += e.bytes
	for k.order.Len() > k.maxChats || k.bytes > k.maxBytes && k.order.Len() > 1 {
		k.drop(k.order.Back().Value.(*entry).chat)
	}
}

func (k *kept) drop(chat string) {
	if e, ok := k.entries[chat]; ok {
		k.bytes -= e.Value.(*entry).bytes
		k.order.Remove(e)
		delete(k.entries, chat)
	}
}

// messageOverhead is about what a message takes besides its content.
const messageOverhead = 2 << 10

func sizeOf(messages []v1alpha1.ChatMessage) int {
	n := 0
	for i := range messages {
		spec := &messages[i].Spec
		n += messageOverhead + len(spec.Content)
		for j := range spec.Parts {
			n += partSize(&spec.Parts[j])
		}
	}
	return n
}

func partSize(p *v1alpha1.MessagePart) int {
	n := len(p.ProviderMetadata)
	if p.Text != nil {
		n += len(*p.Text)
	}
	if p.ToolCall != nil {
		n += len(p.ToolCall.Input)
	}
	if p.ToolResult != nil {
		n += len(p.ToolResult.Output)
	}
	if p.File != nil {
		n += len(p.File.Data)
	}
	return n
}
