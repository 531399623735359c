// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatlist streams the chats of a namespace as events: first all of them, then each change.
// docs/reference/stream.md describes the events.
//
// A client that resumes gets the changes behind the id of its last event: LOG.N, where N numbers the changes. The
// process that gave the id remembers the last 1024 changes of a namespace. Otherwise the client gets the whole list
// again.
package chatlist

import (
	"context"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
)

// debounce is how long changes are gathered before they are sent, so that a chat that changes quickly is sent once.
const debounce = 50 * time.Millisecond

// Chats is a cache of the chats, whose objects must not be changed. It has a change before Logs have it.
type Chats interface {
	// List has all chats of a namespace.
	List(namespace string) []*v1beta1.Chat
	// Get is nil if the chat does not exist.
	Get(namespace, name string) *v1beta1.Chat
}

// Lister lists the chats of a namespace for one client.
type Lister struct {
	Chats Chats
	Logs  *Logs
	// Namespace of the chats.
	Namespace string
	// Send sends an event to the client. An error ends the stream.
	Send func(stream.Event) error
	// KeepAlive is called every KeepAliveEvery, if both are set. An error ends the stream.
	KeepAlive      func() error
	KeepAliveEvery time.Duration

	at Position
}

// Run sends what has changed since a position, and later changes, until ctx is done or the client takes no more. A
// Lister runs once.
func (l *Lister) Run(ctx context.Context, from Position) error {
	reader := l.Logs.read(l.Namespace)
	defer reader.stop()
	var keepAlive <-chan time.Time
	if l.KeepAlive != nil && l.KeepAliveEvery > 0 {
		ticker := time.NewTicker(l.KeepAliveEvery)
		defer ticker.Stop()
		keepAlive = ticker.C
	}
	l.at = from
	for first := true; ; first = false {
		if err := l.sendNews(reader, first); err != nil {
			return err
		}
		if err := l.wait(ctx, reader, keepAlive); err != nil {
			return err
		}
	}
}

// sendNews sends what has changed since the client's position, or everything if that is not known.
func (l *Lister) sendNews(reader *reader, first bool) error {
	if l.at.log == l.Logs.identity {
		if entries, known := reader.since(l.at.number); known {
			if err := l.sendChanges(entries); err != nil || !first {
				return err
			}
			return l.send(stream.EventSynced, l.at.String(), struct{}{})
		}
	}
	if l.at != (Position{}) {
		if err := l.send(stream.EventListReset, "", struct{}{}); err != nil {
			return err
		}
	}
	l.at = Position{log: l.Logs.identity, number: reader.last()} // Changes behind it are sent again.
	for _, chat := range l.Chats.List(l.Namespace) {
		if err := l.send(stream.EventAdded, "", SummaryOf(chat)); err != nil {
			return err
		}
	}
	return l.send(stream.EventSynced, l.at.String(), struct{}{})
}

// sendChanges sends the current state of each chat that has changed.
func (l *Lister) sendChanges(entries []entry) error {
	sent := map[string]bool{}
	for _, e := range entries {
		l.at.number = e.number
		if e.event == stream.EventDeleted {
			sent[e.name] = false
			if err := l.send(e.event, l.at.String(), stream.Deleted{Name: e.name, UID: e.uid}); err != nil {
				return err
			}
			continue
		}
		chat := l.Chats.Get(l.Namespace, e.name)
		if sent[e.name] || chat == nil || chat.UID != e.uid { // A later entry has what became of it.
			continue
		}
		sent[e.name] = true
		if err := l.send(e.event, l.at.String(), SummaryOf(chat)); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when the first change is debounce old.
func (l *Lister) wait(ctx context.Context, reader *reader, keepAlive <-chan time.Time) error {
	changed, gathered := (<-chan struct{})(reader.changed), (<-chan time.Time)(nil)
	for {
		select {
		case <-changed:
			changed, gathered = nil, time.After(debounce)
		case <-gathered:
			return nil
		case <-keepAlive:
			if err := l.KeepAlive(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *Lister) send(name, id string, data any) error {
	event, err := stream.New(name, id, data)
	if err != nil {
		return err
	}
	return l.Send(event)
}

// SummaryOf is a chat in a list.
func SummaryOf(chat *v1beta1.Chat) stream.Summary {
	s := stream.Summary{
		Name: chat.Name, UID: chat.UID, CreatedAt: chat.CreationTimestamp,
		Phase: chat.Status.Phase, Title: chat.Status.Title, LastReply: chat.Status.LastReply, Model: chat.Status.Model,
		Length: chat.Status.History.Length, Queued: len(chat.Status.Queue), Cost: chat.Status.Cost,
		Archived: chat.Status.Archived, Suspended: chat.Spec.Suspend, Root: chat.Status.Root,
		CreatedBy: chat.Annotations[v1beta1.AnnotationCreatedBy],
	}
	if chat.Status.ChatClass != nil {
		s.Class = chat.Status.ChatClass.Name
	}
	if chat.Spec.Fork != nil {
		s.ForkOf = chat.Spec.Fork.Chat
	}
	if chat.Spec.ParentRef != nil {
		s.Parent = chat.Spec.ParentRef.Name
	}
	for i := range chat.Status.Conditions {
		if c := &chat.Status.Conditions[i]; c.Type == v1beta1.ConditionReady {
			s.Ready, s.Reason, s.Message, s.Since = c.Status, c.Reason, c.Message, &c.LastTransitionTime
		}
	}
	if t := chat.Status.Turn; t != nil {
		s.Turn = &stream.Turn{Message: t.Message, StartedAt: t.StartedAt, Result: t.Result, Summary: t.Summary}
	}
	return s
}
