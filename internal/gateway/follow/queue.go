// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

const (
	// previewRunes is how many characters are shown of a message that waits.
	previewRunes = 100
	// queuePatience is how long a queue is told later for the sake of what its messages say.
	queuePatience = 2 * time.Second
)

// Queue looks at messages that are not committed yet.
type Queue interface {
	// Look is what is told of a message that waits for a chat. It fails with ErrMissing, or with an error that may pass.
	Look(ctx context.Context, chat *v1alpha1.Chat, name string) (stream.QueuedMessage, error)
}

// Queued is what is told of a message that waits for a chat. It fails with ErrMissing for one of another chat.
func Queued(chat *v1alpha1.Chat, msg *v1alpha1.ChatMessage) (stream.QueuedMessage, error) {
	if msg.Spec.ChatRef.Name != chat.Name || msg.Spec.Generation != nil {
		return stream.QueuedMessage{}, ErrMissing
	}
	q := stream.QueuedMessage{Name: msg.Name, Preview: opening(msg), WhenBusy: msg.Spec.WhenBusy,
		CreatedAt: &msg.CreationTimestamp}
	if ref := msg.Spec.ModelConfigRef; ref != nil {
		q.Model = ref.Name
	}
	return q, nil
}

// opening is how a message begins that people are to see.
func opening(msg *v1alpha1.ChatMessage) string {
	if msg.Spec.Visibility == v1alpha1.VisibleToModel {
		return ""
	}
	if msg.Spec.Content != "" {
		return line(msg.Spec.Content)
	}
	for _, part := range msg.Spec.Parts {
		if part.Text != nil {
			if said := line(*part.Text); said != "" {
				return said
			}
		}
	}
	for i := range msg.Spec.History {
		if said := line(msg.Spec.History[i].Content); said != "" {
			return said
		}
	}
	return ""
}

// line is the beginning of a text in one line that can be shown anywhere.
func line(text string) string {
	begin := clip.Bytes(text, 8*previewRunes)
	clean := printable.Line(begin)
	if len(begin) < len(text) {
		clean += "…"
	}
	return clip.Ellipsis(clean, previewRunes)
}

// tellQueue sends the queue if it has changed. What cannot be read of its messages in time follows later.
func (p *present) tellQueue(ctx context.Context, chat *v1alpha1.Chat) error {
	if p.shown.queued && !p.shown.queueRetry && sameQueue(p.shown.queue, chat.Status.Queue) {
		return nil
	}
	queue, whole := p.look(ctx, chat)
	if p.shown.queued && slices.Equal(queue, p.shown.queue) {
		p.shown.queueRetry = !whole
		return nil
	}
	if err := p.out.send(stream.EventQueueUpdate, stream.QueueUpdate{Queue: queue}); err != nil {
		return err
	}
	p.shown.queue, p.shown.queued, p.shown.queueRetry = queue, true, !whole
	return nil
}

func sameQueue(shown []stream.QueuedMessage, queue []v1alpha1.QueuedMessage) bool {
	return slices.EqualFunc(shown, queue, func(s stream.QueuedMessage, q v1alpha1.QueuedMessage) bool {
		return s.Name == q.Name && s.Interrupts == q.Interrupts
	})
}

// look is the queue with what is known of its messages. It reports whether that is all that can be.
func (p *present) look(ctx context.Context, chat *v1alpha1.Chat) (queue []stream.QueuedMessage, whole bool) {
	looking, cancel := context.WithTimeout(ctx, queuePatience)
	defer cancel()
	queue, whole = make([]stream.QueuedMessage, 0, len(chat.Status.Queue)), true
	for _, q := range chat.Status.Queue {
		seen := stream.QueuedMessage{Name: q.Name}
		if known := slices.IndexFunc(p.shown.queue,
			func(s stream.QueuedMessage) bool { return s.Name == q.Name && s.CreatedAt != nil }); known >= 0 {
			seen = p.shown.queue[known]
		} else if p.queue != nil {
			found, err := p.queue.Look(looking, chat, q.Name)
			switch {
			case err == nil:
				seen = found
			case !errors.Is(err, ErrMissing):
				whole = false
			}
		}
		seen.Interrupts = q.Interrupts
		queue = append(queue, seen)
	}
	return queue, whole
}
