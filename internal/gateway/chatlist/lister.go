// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatlist

import (
	"context"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// gather is how long changes are gathered before they are told, so that a chat that changes quickly is told once.
const gather = 50 * time.Millisecond

// Chats is what is known of the chats. What it returns must not be changed.
// A change is known here before Logs are told of it.
type Chats interface {
	// List has all chats of a namespace.
	List(namespace string) []*v1alpha1.Chat
	// Get is nil if the chat does not exist.
	Get(namespace, name string) *v1alpha1.Chat
}

// Lister tells one client how the chats of a namespace stand.
type Lister struct {
	Chats Chats
	Logs  *Logs
	// Namespace of the chats.
	Namespace string
	// Send takes an event to the client. An error ends the stream.
	Send func(stream.Event) error
	// KeepAlive is called every KeepAliveEvery, if both are set. An error ends the stream.
	KeepAlive      func() error
	KeepAliveEvery time.Duration

	at Position
}

// Run tells what has changed since a position, and what changes, until ctx is done or the client takes no more. A
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
		if err := l.tell(reader, first); err != nil {
			return err
		}
		if err := l.wait(ctx, reader, keepAlive); err != nil {
			return err
		}
	}
}

// tell tells what has changed since the client's position, or everything if that is not known.
func (l *Lister) tell(reader *reader, first bool) error {
	if l.at.log == l.Logs.identity {
		if entries, known := reader.since(l.at.number); known {
			if err := l.tellChanges(entries); err != nil || !first {
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
	return l.tellAll(reader)
}

func (l *Lister) tellAll(reader *reader) error {
	l.at = Position{log: l.Logs.identity, number: reader.last()} // What changes from here on is told again.
	for _, chat := range l.Chats.List(l.Namespace) {
		if err := l.send(stream.EventAdded, "", SummaryOf(chat)); err != nil {
			return err
		}
	}
	return l.send(stream.EventSynced, l.at.String(), struct{}{})
}

// tellChanges tells each chat that has changed as it is now.
func (l *Lister) tellChanges(entries []entry) error {
	told := map[string]bool{}
	for _, e := range entries {
		l.at.number = e.number
		if e.event == stream.EventDeleted {
			told[e.name] = false
			if err := l.send(e.event, l.at.String(), stream.Deleted{Name: e.name, UID: e.uid}); err != nil {
				return err
			}
			continue
		}
		chat := l.Chats.Get(l.Namespace, e.name)
		if told[e.name] || chat == nil || chat.UID != e.uid { // Or else what became of it is told in its turn.
			continue
		}
		told[e.name] = true
		if err := l.send(e.event, l.at.String(), SummaryOf(chat)); err != nil {
			return err
		}
	}
	return nil
}

// wait returns a moment after something has changed.
func (l *Lister) wait(ctx context.Context, reader *reader, keepAlive <-chan time.Time) error {
	changed, gathered := (<-chan struct{})(reader.changed), (<-chan time.Time)(nil)
	for {
		select {
		case <-changed:
			changed, gathered = nil, time.After(gather)
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
