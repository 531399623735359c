// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package follow streams one chat as events: what is committed, from the API server, and live parts, from the relay of
// the generation pod. docs/reference/stream.md describes the events and their ids.
//
// At any moment committed messages come first, with the notes among them, then the queue, the status, the error, the
// retry, the action, and then the parts of the running attempt. A part is sent only if its attempt is the chat's
// current one and its number follows the last one sent. A client that resumes behind an event id neither misses nor
// repeats a message or a part. If a message that it has was edited or deleted, or the chat is another one of the same
// name, its stream begins with history_reset instead.
package follow

import (
	"context"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/gateway/fanout"
	"parley.dev/parley/internal/netguard/retry"
)

// Chats is the state of one chat.
type Chats interface {
	// Latest is the newest known chat, nil if it does not exist. It must not be changed.
	Latest() *v1beta1.Chat
	// Changed carries a value when Latest may have changed. Values that are not received in time are merged.
	Changed() <-chan struct{}
}

// Messages fetches committed messages.
type Messages interface {
	// Get finds the message that is at a place of the chat's history now. It fails with ErrMissing, with ErrUnsettled, or
	// with a temporary error.
	Get(ctx context.Context, chat *v1beta1.Chat, place Place) (*Committed, error)
}

// Follower follows one chat for one client.
type Follower struct {
	// Chats, Messages and Parts are the sources. Parts may be nil: then there are only whole messages.
	Chats    Chats
	Messages Messages
	Parts    *fanout.Hub
	// Queue looks up queued messages; nil: only their names are sent.
	Queue Queue
	// Notes are the messages for people only; nil: none are sent.
	Notes Notes
	// Encodings of events that all followers of the chat get; nil: each follower makes its own.
	Encodings *Encodings
	// Memory bounds the bytes of messages; nil: 16 MiB while a history is walked.
	Memory *Memory
	// Send sends an event to the client. An error ends the stream.
	Send func(stream.Event) error
	// SendParts sends parts together; nil: Send sends them one by one. It may not keep the slice.
	SendParts func([]stream.Event) error
	// KeepAlive is called every KeepAliveEvery, if both are set. An error ends the stream.
	KeepAlive      func() error
	KeepAliveEvery time.Duration

	transcript transcript
	present    present
	live       live
	alive      keepAlive
	// retries are the pauses between the tries to read what could not be read.
	retries *retry.Pauses
}

// Run follows the chat from a position until ctx is done, the client takes no more, or the chat is deleted, which is no
// error. A Follower runs once.
func (f *Follower) Run(ctx context.Context, from Position) error {
	if f.KeepAlive != nil && f.KeepAliveEvery > 0 {
		ticker := time.NewTicker(f.KeepAliveEvery)
		defer ticker.Stop()
		f.alive = keepAlive{due: ticker.C, send: f.KeepAlive}
	}
	f.begin(from)
	defer f.live.stop()
	for {
		chat := f.Chats.Latest()
		if chat == nil {
			return outlet(f.Send).send(stream.EventDeleted, struct{}{})
		}
		again, err := f.step(ctx, chat)
		if err != nil {
			return err
		}
		if err := f.wait(ctx, again); err != nil {
			return err
		}
	}
}

// Once sends how the chat is now, with so many of its newest messages; 0: all. What cannot be read is an error. A
// message that is missing ends the list of those before it.
func (f *Follower) Once(ctx context.Context, last int64) error {
	f.begin(Position{Last: last})
	chat := f.Chats.Latest()
	news, err := f.transcript.news(ctx, chat)
	if err != nil {
		return err
	}
	if err := f.transcript.send(ctx, chat, news); err != nil {
		return err
	}
	return f.present.send(ctx, chat)
}

func (f *Follower) begin(from Position) {
	f.transcript = transcript{messages: f.Messages, memory: f.Memory, out: f.Send, outParts: f.sendParts,
		at: cursor{resume: &from, last: from.Last}, alive: &f.alive,
		notes: notes{source: f.Notes, memory: f.Memory, out: f.Send, alive: &f.alive}}
	f.present = present{queue: f.Queue, encodings: f.Encodings, out: f.Send, needsID: from.Now}
	f.live = live{parts: f.Parts}
	f.retries = retry.Stream.Start()
}

// step sends what is new in a state of the chat. It returns a channel that fires when a step has to be repeated because
// something could not be read.
func (f *Follower) step(ctx context.Context, chat *v1beta1.Chat) (again <-chan time.Time, err error) {
	news, err := f.transcript.news(ctx, chat)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if f.alive.failed != nil {
			return nil, f.alive.failed
		}
		return time.After(f.retries.NextBackOff()), nil
	}
	f.retries.Reset()
	if news.reset {
		f.present.forget()
	}
	if err := f.transcript.send(ctx, chat, news); err != nil {
		return nil, err
	}
	if err := f.present.send(ctx, chat); err != nil {
		return nil, err
	}
	f.live.follow(ctx, chat, f.transcript.at.seq)
	if f.present.incomplete {
		return time.After(retry.Stream.Max), nil
	}
	return nil, nil
}

// wait sends parts until the chat has changed or again fires.
func (f *Follower) wait(ctx context.Context, again <-chan time.Time) error {
	for {
		select {
		case <-f.Chats.Changed():
			return nil
		case <-again:
			return nil
		case <-f.live.ready():
			if err := f.transcript.appendParts(f.live.reader.Take(ctx)); err != nil {
				return err
			}
		case <-f.alive.due:
			if err := f.alive.send(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *Follower) sendParts(events []stream.Event) error {
	if f.SendParts != nil {
		return f.SendParts(events)
	}
	for _, event := range events {
		if err := f.Send(event); err != nil {
			return err
		}
	}
	return nil
}

// keepAlive sends keep-alives. Whatever takes long for a client that waits sends those that are due: proxies close a
// connection that is silent for a minute.
type keepAlive struct {
	due  <-chan time.Time // nil: there are none
	send func() error
	// failed is why the client takes no more.
	failed error
}

// sendDue sends one if it is due.
func (k *keepAlive) sendDue() error {
	select {
	case <-k.due:
		k.failed = k.send()
	default:
	}
	return k.failed
}

// outlet sends events to the client.
type outlet func(stream.Event) error

// send sends an event without an id.
func (o outlet) send(name string, data any) error {
	event, err := stream.New(name, "", data)
	if err != nil {
		return err
	}
	return o(event)
}

// live reads the parts of the running attempt.
type live struct {
	parts   *fanout.Hub // nil: there are only whole messages
	episode fanout.Episode
	reader  *fanout.Reader // nil: no attempt is running
}

// follow reads the running attempt, if there is one, behind a number.
func (l *live) follow(ctx context.Context, chat *v1beta1.Chat, after int64) {
	g := chat.Status.Generation
	if g == nil || l.parts == nil {
		l.stop()
		return
	}
	episode := fanout.Episode{Namespace: chat.Namespace, Pod: g.Pod, Fence: attempts.Of(chat.UID, &chat.Status)}
	if l.reader == nil || l.episode != episode {
		l.stop()
		l.episode, l.reader = episode, l.parts.Join(ctx, episode, after)
	}
}

func (l *live) stop() {
	if l.reader != nil {
		l.reader.Close()
		l.reader = nil
	}
}

// ready carries a value when there may be parts; nil if no attempt is running.
func (l *live) ready() <-chan struct{} {
	if l.reader == nil {
		return nil
	}
	return l.reader.Ready()
}
