// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chain loads and caches the part of a history that an attempt needs: usually only the message that began the
// turn has to be read.
//
// Invariant: it caches only the messages that the model can see, from status.history.contextStart on. So a summary
// limits the memory of a long chat. Package history checks the messages as a whole chain.
package chain

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/content"
)

// maxGets is how many messages are read one by one before all of the chat's are listed, for which the API server looks
// at each message of the namespace.
const maxGets = 4

// listPage is how many messages are listed at once, to limit the memory of those that the model does not see.
const listPage = 50

// BrokenError means that the messages make no history. Its cause is an error of package history.
type BrokenError struct{ Cause error }

func (e *BrokenError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Cause }

// EditedError means that a message was edited after its commit: the chat is about to restart from there.
type EditedError struct{ Message string }

func (e *EditedError) Error() string {
	return fmt.Sprintf("message %s has been edited since it was committed", e.Message)
}

// Broken reports whether reading again would not help.
func Broken(err error) bool {
	_, ok := errors.AsType[*BrokenError](err)
	return ok
}

// Loader loads histories.
type Loader struct {
	client *apiclient.Client
	kept   *kept
}

// NewLoader returns a loader that caches at most 256 chats and 64 MiB of content.
func NewLoader(client *apiclient.Client) *Loader {
	return &Loader{client: client, kept: newKept(256, 64<<20)}
}

// Load returns the messages that the model can see: from the start of the chat's context to its head. The error is a
// *BrokenError, or an *EditedError if the chat has not seen an edit yet.
func (l *Loader) Load(ctx context.Context, chat *v1beta1.Chat) ([]v1beta1.ChatMessage, error) {
	known := from(chat.Status.History.ContextStart, l.kept.get(key(chat)))
	p := &pass{loader: l, chat: chat, known: known, fetched: map[string]*v1beta1.ChatMessage{}}
	p.place = make(map[string]int, len(p.known))
	for i := range p.known {
		if isFinal(chat, &p.known[i]) {
			p.place[p.known[i].Name] = i
		}
	}
	nodes, err := history.Walk(refOf(chat), func(name string) (history.Node, bool) { return p.lookup(ctx, name) },
		p.isKnown)
	if p.err != nil {
		return nil, fmt.Errorf("reading the messages of chat %s: %w", chat.Name, p.err)
	}
	if err != nil {
		return nil, &BrokenError{err}
	}
	if err := p.unedited(nodes); err != nil {
		return nil, err
	}
	messages := p.join(nodes)
	l.kept.put(key(chat), messages)
	return messages, nil
}

// key is that of the chat's messages in the cache: other ones once text was removed from them.
func key(chat *v1beta1.Chat) string {
	return string(chat.UID) + "/" + chat.Annotations[v1beta1.AnnotationRedacted]
}

// isFinal reports whether a cached message is current. Generated messages never change. People can edit or recreate
// theirs, but the commit proves the message that began the turn. A history is cut at a change, so the messages before a
// final one are current, too.
func isFinal(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	t := chat.Status.Turn
	return m.Spec.Generation != nil ||
		t != nil && t.Message == m.Name && t.HistoryVersion == m.Status.HistoryVersion &&
			chat.Status.Internal.Turn.ContentHash == content.Of(m)
}

// from are the known messages from the index on; none if the first is missing, after an edit has restored an earlier
// context.
func from(start int64, known []v1beta1.ChatMessage) []v1beta1.ChatMessage {
	if len(known) == 0 {
		return nil
	}
	switch first := history.NodeOf(&known[0]).Index; {
	case first > start:
		return nil
	case first < start:
		return slices.Clone(known[min(start-first, int64(len(known))):]) // A slice would keep the others in memory.
	}
	return known
}

// Add caches a message that was just created after the chat's head.
func (l *Loader) Add(chat *v1beta1.Chat, message *v1beta1.ChatMessage) {
	known := l.kept.get(key(chat))
	if n := len(known); n > 0 && known[n-1].Name == message.Spec.Parent {
		l.kept.put(key(chat), append(known[:n:n], *message))
	}
}

// pass is one Load.
type pass struct {
	loader  *Loader
	chat    *v1beta1.Chat
	known   []v1beta1.ChatMessage
	place   map[string]int
	fetched map[string]*v1beta1.ChatMessage
	gets    int
	listed  bool
	err     error
}

func (p *pass) isKnown(n history.Node) bool {
	_, ok := p.place[n.Name]
	return ok
}

func (p *pass) lookup(ctx context.Context, name string) (history.Node, bool) {
	if i, ok := p.place[name]; ok {
		return history.NodeOf(&p.known[i]), true
	}
	if p.fetched[name] == nil && p.err == nil {
		p.err = p.fetch(ctx, name)
	}
	m := p.fetched[name]
	if m == nil || p.err != nil || m.Spec.IsNote() { // A note has replaced a deleted message.
		return history.Node{}, false
	}
	return history.NodeOf(m), true
}

func (p *pass) fetch(ctx context.Context, name string) error {
	messages := p.loader.client.Messages(p.chat.Namespace)
	if p.gets < maxGets || p.listed { // A list can miss a message.
		p.gets++
		m, err := p.get(ctx, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		p.fetched[name] = m
		return nil
	}
	p.listed = true
	options := metav1.ListOptions{FieldSelector: "spec.chatRef.name=" + p.chat.Name, Limit: listPage}
	for {
		page, err := messages.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if m := &page.Items[i]; p.mayBeSeen(m) {
				p.fetched[m.Name] = m.DeepCopy() // A pointer into the page would hold all of it.
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// get reads a message from the API server's cache, if that has what was committed, or else from etcd.
func (p *pass) get(ctx context.Context, name string) (*v1beta1.ChatMessage, error) {
	messages := p.loader.client.Messages(p.chat.Namespace)
	if history.MayBeCertain(p.chat, name) {
		if m, err := messages.GetCached(ctx, name); err == nil && history.Certain(p.chat, m) {
			return m, nil
		}
	}
	return messages.Get(ctx, name)
}

// mayBeSeen reports whether the message may be in the context: User messages do not have their index.
func (p *pass) mayBeSeen(m *v1beta1.ChatMessage) bool {
	n := history.NodeOf(m)
	return !n.Placed || n.Index >= p.chat.Status.History.ContextStart
}

// unedited checks that the fetched User messages are what was committed. An answer to an edited message would not
// count, and if the edit is reverted before the chat sees it, it must not be cached.
func (p *pass) unedited(nodes []history.Node) error {
	for _, n := range nodes {
		m := p.fetched[n.Name]
		if n.Commit != nil && n.Commit.ContentHash != "" && n.Commit.ContentHash != content.Of(m) {
			return fmt.Errorf("reading the messages of chat %s: %w", p.chat.Name, &EditedError{Message: m.Name})
		}
	}
	return nil
}

// join appends the fetched messages to the known ones.
func (p *pass) join(nodes []history.Node) []v1beta1.ChatMessage {
	if len(nodes) == 0 {
		return p.upTo(p.chat.Status.History.Head)
	}
	before := p.upTo(nodes[0].Parent)
	messages := append(slices.Clip(before), make([]v1beta1.ChatMessage, 0, len(nodes))...)
	for _, n := range nodes {
		messages = append(messages, p.placed(p.fetched[n.Name], n))
	}
	return messages
}

// placed is a copy of the message with its position. For a message of a person or a client, a later generated message
// has it, which may be missing from the context.
func (p *pass) placed(m *v1beta1.ChatMessage, n history.Node) v1beta1.ChatMessage {
	out := *m
	if n.Commit != nil {
		out.Status.Parent, out.Status.Index, out.Status.HistoryVersion = n.Parent, &n.Index, n.Version
		out.Status.CallsCanceledReasonBefore = n.Commit.CallsCanceledReasonBefore
	}
	return out
}

func (p *pass) upTo(name string) []v1beta1.ChatMessage {
	if i, ok := p.place[name]; ok {
		return p.known[:i+1]
	}
	return nil
}

func refOf(chat *v1beta1.Chat) history.Ref {
	ref := history.RefOf(chat)
	ref.From = chat.Status.History.ContextStart
	return ref
}

// kept caches the most recently used histories, within limits of their number and size.
type kept struct {
	mu       sync.Mutex
	maxChats int
	maxBytes int
	bytes    int
	order    *list.List // of *entry, the most recently used first
	entries  map[string]*list.Element
}

type entry struct {
	chat     string
	messages []v1beta1.ChatMessage
	bytes    int
}

func newKept(maxChats, maxBytes int) *kept {
	return &kept{maxChats: maxChats, maxBytes: maxBytes, order: list.New(), entries: map[string]*list.Element{}}
}

// get returns the cached history of a chat. The caller must not change it.
func (k *kept) get(chat string) []v1beta1.ChatMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[chat]
	if !ok {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*entry).messages
}

func (k *kept) put(chat string, messages []v1beta1.ChatMessage) {
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

// messageOverhead estimates the memory of a message without its content.
const messageOverhead = 2 << 10

func sizeOf(messages []v1beta1.ChatMessage) int {
	n := 0
	for i := range messages {
		spec := &messages[i].Spec
		n += messageOverhead + len(spec.Content)
		for j := range spec.Parts {
			p := &spec.Parts[j]
			switch n += len(p.ProviderMetadata); {
			case p.Text != nil:
				n += len(*p.Text)
			case p.ToolCall != nil:
				n += len(p.ToolCall.Input)
			case p.ToolResult != nil:
				n += len(p.ToolResult.Output)
			case p.File != nil:
				n += len(p.File.Data)
			}
		}
		for j := range spec.History {
			n += priorSize(&spec.History[j])
		}
	}
	return n
}

// priorSize is the memory of a message of an earlier conversation.
func priorSize(m *v1beta1.PriorMessage) int {
	n := len(m.Content)
	for i := range m.Files {
		n += len(m.Files[i].Data)
	}
	for i := range m.ToolCalls {
		n += len(m.ToolCalls[i].Input)
	}
	for i := range m.ToolResults {
		n += len(m.ToolResults[i].Output)
	}
	return n
}
