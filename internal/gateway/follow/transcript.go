// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/fanout"
	"parley.dev/parley/internal/netguard/retry"
)

// transcript tells a client what is committed, and the parts that follow on it. It knows what the client holds.
type transcript struct {
	messages Messages
	memory   *Memory
	out      outlet
	outParts func([]stream.Event) error
	at       cursor
	notes    notes
	// parts are the events of one batch, as room for those of the next one.
	parts []stream.Event
}

// tell sends what was committed, and says first if what the client holds is void.
func (t *transcript) tell(ctx context.Context, chat *v1alpha1.Chat, n news) error {
	defer t.memory.release(n.messages...)
	if n.reset {
		if err := t.out.send(stream.EventHistoryReset, struct{}{}); err != nil {
			return err
		}
	}
	if void, ok := t.void(chat, n); ok {
		if err := t.out.send(stream.EventPreviewReset, void); err != nil {
			return err
		}
	}
	t.notes.begin(chat, t.at.resume != nil && t.at.resume.Now, n.reset)
	t.enter(chat, n)
	for _, item := range n.messages {
		if err := t.notes.tellBefore(ctx, chat, item.place.Index); err != nil {
			return err
		}
		if err := t.tellMessage(ctx, chat, item); err != nil {
			return err
		}
	}
	return t.notes.end(ctx, chat)
}

// tellMessage sends a message and lets go of it.
func (t *transcript) tellMessage(ctx context.Context, chat *v1alpha1.Chat, item *item) error {
	if message := item.message; message != nil {
		defer t.memory.release(item)
		return t.out(stream.Event{Name: stream.EventMessage, ID: message.ID(), Data: message.Data})
	}
	release, err := t.memory.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	message, err := retry.Do(ctx, retry.Stream, func(ctx context.Context) (*Committed, error) {
		return t.messages.Get(ctx, chat, item.place)
	}, isGone)
	if isGone(err) {
		return nil // it has left the history since, which the chat will say
	}
	if err != nil {
		return err
	}
	return t.out(stream.Event{Name: stream.EventMessage, ID: message.ID(), Data: message.Data})
}

// isGone reports whether an error means that a message is no longer part of the history.
func isGone(err error) bool { return errors.Is(err, ErrMissing) || errors.Is(err, ErrUnsettled) }

// tellParts sends the parts that follow on the last one.
func (t *transcript) tellParts(batch fanout.Batch) error {
	t.parts = t.parts[:0]
	at := Position{Chat: t.at.identity, Version: t.at.version, Attempt: t.at.attempt, Number: t.at.seq, Length: t.at.next}
	for seq, data := range batch.All() {
		if seq != at.Number+1 {
			continue
		}
		at.Number = seq
		t.parts = append(t.parts, stream.Event{Name: stream.EventMessagePart, ID: at.String(), Data: data})
	}
	if len(t.parts) == 0 {
		return nil
	}
	if err := t.outParts(t.parts); err != nil {
		return err
	}
	t.at.seq = at.Number
	return nil
}

// void is the preview that the client must forget: its attempt is not under way any more, and yielded no message.
func (t *transcript) void(chat *v1alpha1.Chat, n news) (stream.PreviewReset, bool) {
	held := t.at.held()
	gone := held.attempt > 0 && held.seq > 0 && !held.current(chat) && !n.yielded && !n.reset
	return stream.PreviewReset{HistoryVersion: held.version, Attempt: held.attempt}, gone
}

// enter moves the cursor to the chat's head and to the attempt under way.
func (t *transcript) enter(chat *v1alpha1.Chat, n news) {
	now := preview{version: chat.Status.History.Version}
	if chat.Status.Generation != nil {
		now.attempt = chat.Status.Generation.Attempt
	}
	if held := t.at.held(); held.current(chat) && !n.reset {
		now.seq = held.seq
	}
	t.at = cursor{
		uid: chat.UID, identity: identity(chat.UID), next: chat.Status.History.Length, head: chat.Status.History.Head,
		final: n.final, last: t.at.last, preview: now,
	}
}
