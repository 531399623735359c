// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chain loads the part of a history that an attempt builds on, and keeps it at hand: in the usual case only the
// message that began the turn has to be fetched.
//
// The invariant it keeps: of a chat nothing is held but what its model can see, from status.history.contextStart on. So
// a summary bounds what a long chat costs its pod, and what is held is checked as package history checks a whole chain.
package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/content"
)

// maxGets is how many messages are fetched one by one before all of the chat's are listed: listing makes the API server
// look at every message of the namespace.
const maxGets = 4

// listPage is how many messages are listed at once, so that those that the model does not see pass through one by one.
const listPage = 50

// BrokenError means that the messages are there to be read, but make no history.
type BrokenError struct {
	// Cause is an error of package history.
	Cause error
}

func (e *BrokenError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Cause }

// EditedError means that a message says something else than what was committed:
// the chat is about to begin again from there.
type EditedError struct {
	// Message that was edited.
	Message string
}

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

// NewLoader returns a loader that keeps histories at hand: at most 256 chats and 64 MiB of content.
func NewLoader(client *apiclient.Client) *Loader {
	return &Loader{client: client, kept: newKept(256, 64<<20)}
}

// Load returns the messages that the model can see: from the one at which the chat's context starts to its head. If
// they make no whole history, the error is a *BrokenError; if one of them was edited and the chat does not know yet,
// an *EditedError.
func (l *Loader) Load(ctx context.Context, chat *v1alpha1.Chat) ([]v1alpha1.ChatMessage, error) {
	known := from(chat.Status.History.ContextStart, l.kept.get(string(chat.UID)))
	p := &pass{loader: l, chat: chat, known: known, fetched: map[string]*v1alpha1.ChatMessage{}}
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
	l.kept.put(string(chat.UID), messages)
	return messages, nil
}

// isFinal reports whether what is kept of a message is what it says: nothing that was generated ever changes. People
// edit theirs, and delete and create them again, so that a name proves nothing; of the message that began the turn, its
// commit does. A history is cut at what was changed. So what is kept before a final message is as it was, and nothing
// else has to be read again.
func isFinal(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	t := chat.Status.Turn
	return m.Spec.Generation != nil ||
		t != nil && t.Message == m.Name && t.HistoryVersion == m.Status.HistoryVersion &&
			chat.Status.Internal.Turn.ContentHash == content.Hash(&m.Spec)
}

// from is what is known from the index on. That is nothing where the beginning is missing: an edit has brought an
// earlier context back.
func from(start int64, known []v1alpha1.ChatMessage) []v1alpha1.ChatMessage {
	if len(known) == 0 {
		return nil
	}
	switch first := history.NodeOf(&known[0]).Index; {
	case first > start:
		return nil
	case first < start:
		return slices.Clone(known[min(start-first, int64(len(known))):]) // Or what was cut off would be held, too.
	}
	return known
}

// Add keeps a message that was just created on top of the chat's head.
func (l *Loader) Add(chat *v1alpha1.Chat, message *v1alpha1.ChatMessage) {
	known := l.kept.get(string(chat.UID))
	if n := len(known); n > 0 && known[n-1].Name == message.Spec.Parent {
		l.kept.put(string(chat.UID), append(known[:n:n], *message))
	}
}

// pass is one Load.
type pass struct {
	loader  *Loader
	chat    *v1alpha1.Chat
	known   []v1alpha1.ChatMessage
	place   map[string]int
	fetched map[string]*v1alpha1.ChatMessage
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
	if m == nil || p.err != nil || m.Spec.IsNote() { // Under its name there was a message, which is gone.
		return history.Node{}, false
	}
	return history.NodeOf(m), true
}

func (p *pass) fetch(ctx context.Context, name string) error {
	messages := p.loader.client.Messages(p.chat.Namespace)
	if p.gets < maxGets || p.listed { // What a list passed over is asked for by its name.
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

// get reads a message: as the API server's cache has it, if that is what was committed, and else as it is now.
func (p *pass) get(ctx context.Context, name string) (*v1alpha1.ChatMessage, error) {
	messages := p.loader.client.Messages(p.chat.Namespace)
	if history.MayBeCertain(p.chat, name) {
		if m, err := messages.GetCached(ctx, name); err == nil && history.Certain(p.chat, m) {
			return m, nil
		}
	}
	return messages.Get(ctx, name)
}

// mayBeSeen reports whether the message does not say of itself that it stands before the context.
func (p *pass) mayBeSeen(m *v1alpha1.ChatMessage) bool {
	n := history.NodeOf(m)
	return !n.Placed || n.Index >= p.chat.Status.History.ContextStart
}

// unedited makes sure that the User messages that were fetched say what was committed. Of one that was edited, an
// answer would count for nothing; and if the edit is taken back before the chat sees it,
// what it said in between must not be kept.
func (p *pass) unedited(nodes []history.Node) error {
	for _, n := range nodes {
		m := p.fetched[n.Name]
		if n.Commit != nil && n.Commit.ContentHash != "" && n.Commit.ContentHash != content.Hash(&m.Spec) {
			return fmt.Errorf("reading the messages of chat %s: %w", p.chat.Name, &EditedError{Message: m.Name})
		}
	}
	return nil
}

// join puts what is known before what was fetched.
func (p *pass) join(nodes []history.Node) []v1alpha1.ChatMessage {
	if len(nodes) == 0 {
		return p.upTo(p.chat.Status.History.Head)
	}
	before := p.upTo(nodes[0].Parent)
	messages := append(slices.Clip(before), make([]v1alpha1.ChatMessage, 0, len(nodes))...)
	for _, n := range nodes {
		messages = append(messages, p.placed(p.fetched[n.Name], n))
	}
	return messages
}

// placed is a copy of the message that says where it stands: of one of a person or a client, the generated message
// behind it knows, which is not always there to be asked.
func (p *pass) placed(m *v1alpha1.ChatMessage, n history.Node) v1alpha1.ChatMessage {
	out := *m
	if n.Commit != nil {
		out.Status.Parent, out.Status.Index, out.Status.HistoryVersion = n.Parent, &n.Index, n.Version
		out.Status.CallsGivenUpBefore = n.Commit.CallsGivenUpBefore
	}
	return out
}

func (p *pass) upTo(name string) []v1alpha1.ChatMessage {
	if i, ok := p.place[name]; ok {
		return p.known[:i+1]
	}
	return nil
}

// refOf is the part of the chat's history that its model can see.
func refOf(chat *v1alpha1.Chat) history.Ref {
	ref := history.RefOf(chat)
	ref.From = chat.Status.History.ContextStart
	return ref
}
