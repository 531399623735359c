// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/fanout"
	"parley.dev/parley/internal/netguard/retry"
)

// Chats is the state of one chat.
type Chats interface {
	// Latest is the chat as it is known now, nil if it does not exist. It must not be changed.
	Latest() *v1alpha1.Chat
	// Changed carries a value when Latest may tell something new. Values may be lost while one is waiting to be taken.
	Changed() <-chan struct{}
}

// Messages fetches committed messages.
type Messages interface {
	// Get finds the message at a place of the chat's history, as it is there now. It fails with ErrMissing, with
	// ErrUnsettled, or with an error that may pass.
	Get(ctx context.Context, chat *v1alpha1.Chat, place Place) (*Committed, error)
}

// Follower follows one chat for one client.
type Follower struct {
	// Chats, Messages and Parts are where the story comes from. Parts may be nil: then there are only whole messages.
	Chats    Chats
	Messages Messages
	Parts    *fanout.Hub
	// Queue looks at messages that wait; nil: their names are all that is told of them.
	Queue Queue
	// Notes are the messages for people alone; nil: nobody is told of any.
	Notes Notes
	// Encodings of events that all who follow the chat get; nil: each follower makes its own.
	Encodings *Encodings
	// Memory bounds what is held of messages; nil: 16 MiB while a history is walked.
	Memory *Memory
	// Send takes an event to the client. An error ends the stream.
	Send func(stream.Event) error
	// SendParts takes parts that come together; nil: Send takes them one by one. It may not keep the slice.
	SendParts func([]stream.Event) error
	// KeepAlive is called every KeepAliveEvery, if both are set. An error ends the stream.
	KeepAlive      func() error
	KeepAliveEvery time.Duration

	transcript transcript
	present    present
	live       live
	// retries are the pauses before what could not be told is tried again.
	retries *retry.Pauses
}

// Run follows the chat from a position until ctx is done, the client takes no more, or the chat is deleted, which is no
// error. A Follower runs once.
func (f *Follower) Run(ctx context.Context, from Position) error {
	f.begin(from)
	defer f.live.stop()
	var keepAlive <-chan time.Time
	if f.KeepAlive != nil && f.KeepAliveEvery > 0 {
		ticker := time.NewTicker(f.KeepAliveEvery)
		defer ticker.Stop()
		keepAlive = ticker.C
	}
	for {
		chat := f.Chats.Latest()
		if chat == nil {
			return outlet(f.Send).send(stream.EventDeleted, struct{}{})
		}
		again, err := f.step(ctx, chat)
		if err != nil {
			return err
		}
		if err := f.wait(ctx, again, keepAlive); err != nil {
			return err
		}
	}
}

// Once tells how the chat is now, with so many of its newest messages; 0: all. What cannot be read is an error; a
// message that is gone by now ends what is told of those before it.
func (f *Follower) Once(ctx context.Context, last int64) error {
	f.begin(Position{Last: last})
	chat := f.Chats.Latest()
	news, err := f.transcript.news(ctx, chat)
	if err != nil {
		return err
	}
	if err := f.transcript.tell(ctx, chat, news); err != nil {
		return err
	}
	return f.present.tell(ctx, chat)
}

func (f *Follower) begin(from Position) {
	f.transcript = transcript{messages: f.Messages, memory: f.Memory, out: f.Send, outParts: f.sendParts,
		at:    cursor{resume: &from, last: from.Last},
		notes: notes{source: f.Notes, memory: f.Memory, out: f.Send}}
	f.present = present{queue: f.Queue, encodings: f.Encodings, out: f.Send}
	f.live = live{parts: f.Parts}
	f.retries = retry.Stream.Start()
}

// step sends whatever a state of the chat has to tell. It returns a channel that fires when it could not do so wholly
// and wants to try again.
func (f *Follower) step(ctx context.Context, chat *v1alpha1.Chat) (again <-chan time.Time, err error) {
	news, err := f.transcript.news(ctx, chat)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return time.After(f.retries.NextBackOff()), nil
	}
	f.retries.Reset()
	if news.reset {
		f.present.forget()
	}
	if err := f.transcript.tell(ctx, chat, news); err != nil {
		return nil, err
	}
	if err := f.present.tell(ctx, chat); err != nil {
		return nil, err
	}
	f.live.follow(ctx, chat, f.transcript.at.seq)
	if !f.present.whole() {
		return time.After(retry.Stream.Max), nil
	}
	return nil, nil
}

// wait sends parts until the chat has changed or again fires.
func (f *Follower) wait(ctx context.Context, again, keepAlive <-chan time.Time) error {
	for {
		select {
		case <-f.Chats.Changed():
			return nil
		case <-again:
			return nil
		case <-f.live.ready():
			if err := f.transcript.tellParts(f.live.reader.Take(ctx)); err != nil {
				return err
			}
		case <-keepAlive:
			if err := f.KeepAlive(); err != nil {
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

// outlet takes events to the client.
type outlet func(stream.Event) error

// send sends an event that nobody can resume behind.
func (o outlet) send(name string, data any) error {
	event, err := stream.New(name, "", data)
	if err != nil {
		return err
	}
	return o(event)
}
