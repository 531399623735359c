// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

// dropDeletedQueued takes deleted messages out of the queue.
func dropDeletedQueued(p *pass) error {
	if p.status().Archived {
		return nil
	}
	for _, queued := range slices.Clone(p.status().Queue) {
		if isThere(p, queued.Name) {
			continue
		}
		if err := p.fire(machine.DeleteQueued, subject{message: queued.Name}); err != nil {
			return err
		}
	}
	return nil
}

// isThere reports whether the queued message exists.
func isThere(p *pass, queued string) bool {
	return slices.ContainsFunc(p.facts.Queued, func(m Message) bool { return m.Name == queued })
}

// takeOpenMessages takes new User messages up: an idle chat begins a turn, a busy one queues them as far as there is
// room.
func takeOpenMessages(p *pass) error {
	if editIsNext(p) {
		return nil
	}
	for _, message := range p.facts.Open {
		if heldUntil(p, message) != nil {
			continue
		}
		if isDeferred(p, message) {
			return nil
		}
		if len(p.status().Internal.Tail)+len(p.status().Queue) >= v1beta1.MaxTail {
			p.plan.Rejected = append(p.plan.Rejected, tailFull(p, message.Name))
			continue
		}
		about := subject{message: message.Name, interrupts: message.Interrupts}
		switch refused := p.try(eventOfMessage(p, message), about); refused {
		case "":
		case machine.QueueFull:
			p.plan.Rejected = append(p.plan.Rejected, queueFull(p, message.Name))
			continue
		default:
			return fmt.Errorf("taking message %s up in state %s: %s", message.Name, p.state(), refused.Meaning())
		}
		p.plan.Taken = append(p.plan.Taken, message.Name)
		if err := followPhase(p); err != nil {
			return err
		}
	}
	return nil
}

// isDeferred reports whether the message and those behind it are taken up later: when the chat is taken back, or when
// there is a model.
func isDeferred(p *pass, message Message) bool {
	return p.facts.Archive || p.status().Archived || p.idle() && blockedBy(p, message) != nil
}

// editIsNext reports whether an edit is left to the next pass. No message is taken up before it: the edit supersedes
// the queue.
func editIsNext(p *pass) bool { return p.facts.Truncated != nil && p.facts.Edited != nil }

func queueFull(p *pass, message string) Rejection {
	return Rejection{message, v1beta1.ReasonQueueFull, fmt.Sprintf(
		"The queue of chat %s is full (%d messages, and limits.maxQueue is %d): delete this message and create it again "+
			"when there is room",
		p.chat.Name, len(p.status().Queue), p.chat.Spec.MaxQueueOrDefault())}
}

func tailFull(p *pass, message string) Rejection {
	return Rejection{message, v1beta1.ReasonQueueFull, fmt.Sprintf(
		"The last %d messages of chat %s have no reply, and there can be no more: see why its turns end without one, "+
			"delete some of them, and create this message again", v1beta1.MaxTail, p.chat.Name)}
}

func eventOfMessage(p *pass, message Message) machine.Event {
	switch {
	case p.state() == machine.None:
		return machine.Create
	case message.Interrupts:
		return machine.SendMessageInterrupt
	}
	return machine.SendMessageQueue
}

func promoteHead(p *pass) {
	st := p.status()
	first := slices.IndexFunc(st.Queue, func(q v1beta1.QueuedMessage) bool { return q.HeldUntil == nil })
	next := st.Queue[first].Name
	st.Queue = slices.Delete(st.Queue, first, first+1)
	beginTurn(p, next)
}

// promoteQueued lets queued messages cut in that were told to since they were queued.
func promoteQueued(p *pass) error {
	for _, message := range p.facts.Queued {
		queued := slices.IndexFunc(p.status().Queue, func(q v1beta1.QueuedMessage) bool { return q.Name == message.Name })
		if p.status().Archived || !message.Interrupts || queued < 0 || p.status().Queue[queued].Interrupts ||
			p.status().Queue[queued].HeldUntil != nil {
			continue
		}
		if err := p.fire(machine.PromoteQueued, subject{message: message.Name}); err != nil {
			return err
		}
		if err := followPhase(p); err != nil {
			return err
		}
	}
	return nil
}

// cutIn puts the message, be it new or queued, behind those that cut in before it, and all of these before the others.
func cutIn(p *pass, message string) {
	var cutIns, others []v1beta1.QueuedMessage
	for _, queued := range p.status().Queue {
		switch {
		case queued.Name == message:
		case queued.Interrupts:
			cutIns = append(cutIns, queued)
		default:
			others = append(others, queued)
		}
	}
	p.status().Queue = slices.Concat(cutIns, []v1beta1.QueuedMessage{{Name: message, Interrupts: true}}, others)
}

func clearQueue(p *pass) {
	for _, queued := range p.status().Queue {
		p.plan.Superseded = append(p.plan.Superseded, queued.Name)
	}
	p.status().Queue = nil
}

// messageNamed is a message that is about to be committed.
func messageNamed(p *pass, name string) Message {
	if p.facts.Edited != nil && p.facts.Edited.Name == name {
		return p.facts.Edited.Message
	}
	for _, messages := range [][]Message{p.facts.Open, p.facts.Queued} {
		for _, message := range messages {
			if message.Name == name {
				return message
			}
		}
	}
	return Message{Name: name}
}
