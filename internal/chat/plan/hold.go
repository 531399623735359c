// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

// MaxHold is how far ahead a hold of a message may end: 15 min. A later time has no effect until then, so that nothing
// blocks a message for good.
const MaxHold = 15 * time.Minute

// HoldOf is the time until which the message asks to be held; zero if it does not.
func HoldOf(m *v1beta1.ChatMessage) time.Time {
	until, _ := time.Parse(time.RFC3339, m.Annotations[v1beta1.AnnotationHoldUntil]) // What is no time holds nothing.
	return until.Truncate(time.Second)
}

// heldUntil is when the message is released; nil if it is not held.
func heldUntil(p *pass, m Message) *metav1.Time {
	if left := m.HoldUntil.Sub(p.facts.Now); left <= 0 || left > MaxHold {
		return nil
	}
	return new(metav1.NewTime(m.HoldUntil))
}

// applyHolds notes which queued messages are held. The state machine counts only the others, so a chat that is Waiting
// can have held messages. One that is released there counts as held until takeReleased.
func applyHolds(p *pass) error {
	st := p.status()
	if st.Archived {
		return nil
	}
	waiting := st.Phase == v1beta1.ChatWaiting
	st.Queue = slices.DeleteFunc(st.Queue, func(q v1beta1.QueuedMessage) bool { return waiting && !isThere(p, q.Name) })
	for i := range st.Queue {
		if until := heldUntil(p, messageNamed(p, st.Queue[i].Name)); until != nil || !waiting {
			st.Queue[i].HeldUntil = until
		}
	}
	return nil
}

// takeReleased starts the first message that is released in a chat that is Waiting. The others that are released in the
// same pass stay queued: none of them interrupts it, and no limit rejects them. Without a model all are open again.
func takeReleased(p *pass) error {
	st := p.status()
	isReleased := func(q v1beta1.QueuedMessage) bool { return heldUntil(p, messageNamed(p, q.Name)) == nil }
	first := slices.IndexFunc(st.Queue, isReleased)
	if st.Phase != v1beta1.ChatWaiting || first < 0 || editIsNext(p) {
		return applyHolds(p) // A deletion may have started the chat.
	}
	message := messageNamed(p, st.Queue[first].Name)
	if isDeferred(p, message) {
		isHeld := func(m Message) bool { return heldUntil(p, m) != nil }
		p.facts.Open = slices.Concat(slices.DeleteFunc(slices.Clone(p.facts.Queued), isHeld), p.facts.Open)
		st.Queue = slices.DeleteFunc(st.Queue, isReleased)
		return nil
	}
	st.Queue = slices.Delete(st.Queue, first, first+1)
	if err := p.fire(machine.SendMessageQueue, subject{message: message.Name}); err != nil {
		return err
	}
	if err := applyHolds(p); err != nil {
		return err
	}
	return followPhase(p)
}

// heldMessages is how many queued messages are held.
func (p *pass) heldMessages() (n int) {
	for _, queued := range p.status().Queue {
		if queued.HeldUntil != nil {
			n++
		}
	}
	return n
}

// nextRelease is when the first held message is released; nil if none is held.
func nextRelease(p *pass) (next *metav1.Time) {
	if p.status().Archived {
		return nil
	}
	note := func(until *metav1.Time) {
		if until != nil && (next == nil || until.Before(next)) {
			next = until
		}
	}
	for _, queued := range p.status().Queue {
		note(queued.HeldUntil)
	}
	for _, message := range p.facts.Open {
		note(heldUntil(p, message))
	}
	return next
}
