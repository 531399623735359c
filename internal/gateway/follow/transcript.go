// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/fanout"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/retry"
)

// transcript sends committed messages, and the parts that follow them. It knows what the client has.
type transcript struct {
	messages Messages
	memory   *Memory
	out      outlet
	outParts func([]stream.Event) error
	at       cursor
	notes    notes
	alive    *keepAlive
	// parts are the events of the last batch, whose memory the next one uses.
	parts []stream.Event
}

// send sends what was committed. What the client has is declared void first, if it is.
func (t *transcript) send(ctx context.Context, chat *v1beta1.Chat, n news) error {
	defer t.memory.release(n.messages...)
	if n.reset {
		if err := t.out.send(stream.EventHistoryReset, struct{}{}); err != nil {
			return err
		}
	}
	if held := t.at.held(); held.isVoid(chat) && !n.hasPreview && !n.reset {
		void := stream.PreviewReset{HistoryVersion: held.version, Attempt: held.attempt}
		if err := t.out.send(stream.EventPreviewReset, void); err != nil {
			return err
		}
	}
	t.notes.begin(chat, t.at.resume != nil && t.at.resume.Now, n.reset)
	t.enter(chat, n)
	return t.sendAll(ctx, chat, n.messages)
}

// sendAll sends messages, with the notes among and behind them.
func (t *transcript) sendAll(ctx context.Context, chat *v1beta1.Chat, messages []*item) error {
	for _, item := range messages {
		if err := t.notes.sendBefore(ctx, chat, item.place.Index); err != nil {
			return err
		}
		if err := t.sendItem(ctx, chat, item); err != nil {
			return err
		}
	}
	return t.notes.end(ctx, chat)
}

// sendItem sends a message and releases its memory.
func (t *transcript) sendItem(ctx context.Context, chat *v1beta1.Chat, item *item) error {
	send := func(message *Committed) error {
		return t.out(stream.Event{Name: stream.EventMessage, ID: message.ID(), Data: message.Data})
	}
	if item.message != nil {
		defer t.memory.release(item)
		return send(item.message)
	}
	return fetch(ctx, t.memory, t.alive, func(ctx context.Context) (*Committed, error) {
		return t.messages.Get(ctx, chat, item.place)
	}, send)
}

// fetch reads a message with memory for one, and sends it. A message that has left the chat is skipped: the chat
// reports that.
func fetch[T any](ctx context.Context, memory *Memory, alive *keepAlive, get func(context.Context) (T, error),
	send func(T) error) error {
	release, err := memory.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	isGone := func(err error) bool { return errors.Is(err, ErrMissing) || errors.Is(err, ErrUnsettled) }
	isOver := func(error) bool { return alive.sendDue() != nil }
	switch message, err := retry.Do(ctx, retry.Stream, get, isGone, isOver); {
	case isGone(err):
		return nil
	case err != nil:
		return err
	default:
		return send(message)
	}
}

// appendParts sends the parts that follow the last one.
func (t *transcript) appendParts(batch fanout.Batch) error {
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

// enter moves the cursor to the chat's head and to the running attempt.
func (t *transcript) enter(chat *v1beta1.Chat, n news) {
	now := preview{version: chat.Status.History.Version}
	if chat.Status.Generation != nil {
		now.attempt = chat.Status.Generation.Attempt
	}
	if held := t.at.held(); held.isCurrent(chat) && !n.reset {
		now.seq = held.seq
	}
	t.at = cursor{
		uid: chat.UID, identity: identity(chat.UID), next: chat.Status.History.Length, head: chat.Status.History.Head,
		final: n.final, last: t.at.last, preview: now,
	}
}

// Memory bounds the bytes of messages that all followers of a process hold. One half is for those that are kept while a
// history is walked, which never waits for it. The other half is for those that are being sent. A follower that waits
// for that half holds none of it, so there is no deadlock. A nil Memory bounds nothing.
type Memory struct{ kept, sent limit.Limiter }

// NewMemory makes a Memory of so many bytes.
func NewMemory(bytes int64) *Memory {
	half := max(1, bytes/2)
	return &Memory{limit.New(half), limit.New(half)}
}

// messageBytes is the memory for one message: the most that etcd accepts of an object.
const messageBytes = 3 << 19

// keep takes memory for bytes, if there is any.
func (m *Memory) keep(bytes int) bool { return m == nil || m.kept.TryAcquire(int64(bytes)) }

// acquire waits for memory for one message that was not kept.
func (m *Memory) acquire(ctx context.Context) (release func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	if release, err = m.sent.Acquire(ctx, messageBytes); err != nil {
		return nil, fmt.Errorf("waiting for memory: %w", err)
	}
	return release, nil
}

// release releases the memory of kept messages, once.
func (m *Memory) release(items ...*item) {
	for _, item := range items {
		if item.message != nil && m != nil {
			m.kept.Release(int64(len(item.message.Data)))
		}
		item.message = nil
	}
}
