// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/stream/parts"
)

const (
	// firstRetry and lastRetry bound the pause before something that failed is tried again; it doubles in between.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
)

func backoff() wait.Backoff {
	return wait.Backoff{Duration: firstRetry, Factor: 2, Cap: lastRetry, Steps: math.MaxInt}
}

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

// Parts reads live parts.
type Parts interface {
	// Subscribe yields the frames of an episode behind number after from the relay of a pod. It ends without an error
	// when the episode is over.
	Subscribe(ctx context.Context, namespace, pod string, ep fence.Fence, after int64) iter.Seq2[parts.Frame, error]
}

// Follower follows one chat for one client.
type Follower struct {
	// Chats, Messages and Parts are where the story comes from. Parts may be nil: then there are only whole messages.
	Chats    Chats
	Messages Messages
	Parts    Parts
	// Queue looks at messages that wait; nil: their names are all that is told of them.
	Queue Queue
	// Memory bounds what is held of messages; nil: 16 MiB while a history is walked.
	Memory Memory
	// Send takes an event to the client. An error ends the stream.
	Send func(Event) error
	// KeepAlive is called every KeepAliveEvery, if both are set. An error ends the stream.
	KeepAlive      func() error
	KeepAliveEvery time.Duration

	cursor
	shown shown
	pump  *pump
	// retries are the pauses before what could not be told is tried again.
	retries wait.Backoff
}

// shown is what the client was told of the present.
type shown struct {
	queue         []QueuedMessage
	queued        bool // whether queue was sent at all
	queueRetry    bool // whether it was sent without all that should be known
	status        *Status
	errorVersion  int64
	actionVersion int64
	retryVersion  int64
	retryAttempt  int32
}

// Run follows the chat from a position until ctx is done, the client takes no more, or the chat is deleted, which is no
// error. A Follower runs once.
func (f *Follower) Run(ctx context.Context, from Position) error {
	defer f.stopPump()
	f.cursor, f.retries = cursor{resume: &from}, backoff()
	var keepAlive <-chan time.Time
	if f.KeepAlive != nil && f.KeepAliveEvery > 0 {
		ticker := time.NewTicker(f.KeepAliveEvery)
		defer ticker.Stop()
		keepAlive = ticker.C
	}
	for {
		chat := f.Chats.Latest()
		if chat == nil {
			return f.send(EventDeleted, "", struct{}{})
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

// step sends whatever a state of the chat has to tell. It returns a channel that fires when it could not do so wholly
// and wants to try again.
func (f *Follower) step(ctx context.Context, chat *v1alpha1.Chat) (again <-chan time.Time, err error) {
	news, err := f.news(ctx, chat)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return time.After(f.retries.Step()), nil
	}
	f.retries = backoff()
	err = f.sendHistory(ctx, chat, news)
	f.release(news.messages)
	if err != nil {
		return nil, err
	}
	if err := f.sendPresent(ctx, chat); err != nil {
		return nil, err
	}
	f.follow(ctx, chat)
	if f.shown.queueRetry {
		return time.After(lastRetry), nil
	}
	return nil, nil
}

// sendHistory sends what was committed, and says first if what the client holds is void.
func (f *Follower) sendHistory(ctx context.Context, chat *v1alpha1.Chat, n news) error {
	if n.reset {
		f.shown = shown{}
		if err := f.send(EventHistoryReset, "", struct{}{}); err != nil {
			return err
		}
	}
	if void, ok := f.void(chat, n); ok {
		if err := f.send(EventPreviewReset, "", void); err != nil {
			return err
		}
	}
	f.enter(chat, n)
	for i := range n.messages {
		if err := f.sendMessage(ctx, chat, &n.messages[i]); err != nil {
			return err
		}
	}
	return nil
}

// sendMessage sends a message and lets go of it.
func (f *Follower) sendMessage(ctx context.Context, chat *v1alpha1.Chat, item *item) error {
	if message := item.message; message != nil {
		defer f.letGo(item)
		return f.Send(Event{Name: EventMessage, ID: message.ID(), Data: message.Data})
	}
	giveBack, err := f.borrow(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	message, err := f.load(ctx, chat, item.place)
	if errors.Is(err, ErrMissing) || errors.Is(err, ErrUnsettled) {
		return nil // it has left the history since, which the chat will say
	}
	if err != nil {
		return err
	}
	return f.Send(Event{Name: EventMessage, ID: message.ID(), Data: message.Data})
}

// load fetches a message again that was not kept while the history was walked.
func (f *Follower) load(ctx context.Context, chat *v1alpha1.Chat, place Place) (*Committed, error) {
	for retries := backoff(); ; {
		message, err := f.Messages.Get(ctx, chat, place)
		if err == nil || errors.Is(err, ErrMissing) || errors.Is(err, ErrUnsettled) {
			return message, err
		}
		select {
		case <-time.After(retries.Step()):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// sendPresent sends the queue, the status, the error and what a person must do, as far as the client was not told.
func (f *Follower) sendPresent(ctx context.Context, chat *v1alpha1.Chat) error {
	if err := f.sendQueue(ctx, chat); err != nil {
		return err
	}
	if status := statusOf(chat); f.shown.status == nil || *f.shown.status != status {
		if err := f.send(EventStatus, "", status); err != nil {
			return err
		}
		f.shown.status = &status
	}
	for _, send := range []func(*v1alpha1.Chat) error{f.sendError, f.sendRetry, f.sendAction} {
		if err := send(chat); err != nil {
			return err
		}
	}
	return nil
}

// sendError sends why the turn failed, once per version of the history.
func (f *Follower) sendError(chat *v1alpha1.Chat) error {
	version := chat.Status.History.Version
	if chat.Status.LastError == nil || f.shown.errorVersion == version {
		return nil
	}
	if err := f.send(EventError, "", errorOf(chat)); err != nil {
		return err
	}
	f.shown.errorVersion = version
	return nil
}

// sendRetry tells of each failed attempt once.
func (f *Follower) sendRetry(chat *v1alpha1.Chat) error {
	version, retry := chat.Status.History.Version, chat.Status.Retry
	if retry == nil || f.shown.retryVersion == version && f.shown.retryAttempt == retry.Attempt {
		return nil
	}
	if err := f.send(EventRetry, "", retryOf(chat)); err != nil {
		return err
	}
	f.shown.retryVersion, f.shown.retryAttempt = version, retry.Attempt
	return nil
}

// sendAction sends what a person must do, once per version of the history.
func (f *Follower) sendAction(chat *v1alpha1.Chat) error {
	version := chat.Status.History.Version
	if chat.Status.RequiresAction == nil || f.shown.actionVersion == version {
		return nil
	}
	if err := f.send(EventRequiresAction, "", actionOf(chat)); err != nil {
		return err
	}
	f.shown.actionVersion = version
	return nil
}

// wait sends parts until the chat has changed or again fires.
func (f *Follower) wait(ctx context.Context, again, keepAlive <-chan time.Time) error {
	for {
		select {
		case <-f.Chats.Changed():
			return nil
		case <-again:
			return nil
		case frame := <-f.pump.out():
			if err := f.sendPart(frame); err != nil {
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

func (f *Follower) sendPart(frame parts.Frame) error {
	if frame.Seq != f.seq+1 {
		return nil
	}
	at := Position{Chat: f.identity, Version: f.version, Attempt: f.attempt, Number: frame.Seq, Length: f.next}
	err := f.send(EventMessagePart, at.String(), MessagePart{
		HistoryVersion: f.version, Attempt: f.attempt, Seq: frame.Seq, Role: frame.Role, Part: frame.Part,
	})
	if err == nil {
		f.seq = frame.Seq
	}
	return err
}

func (f *Follower) send(name, id string, data any) error {
	event, err := encoded(name, id, data)
	if err != nil {
		return err
	}
	return f.Send(event)
}
