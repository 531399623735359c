// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

// subject is what an event is about.
type subject struct {
	message string
	// interrupts is true for a message that cuts in.
	interrupts bool
	result     *v1beta1.ChatMessage
	// results are a client's, if there are any.
	results *clientResults
	action  v1beta1.GenerationAction
	err     *v1beta1.GenerationError
	// retry is the next attempt at the step, and what is remembered for it.
	retry *attemptRecord
	// compaction is what asks for one.
	compaction v1beta1.CompactionSource
	// fork is the history to begin with.
	fork *Fork
	// ending is how the turn ends, for an event that ends one.
	ending v1beta1.TurnResult
	// attempt is how the attempt under way ended; nil: its result is no longer awaited.
	attempt *AttemptEnd
}

// try asks the state machine for the transition and carries out its effects on the status,
// or says why the event is refused.
func (p *pass) try(event machine.Event, s subject) (refused machine.Reason) {
	t, refused := machine.Lookup(p.state(), event, p.machineFacts(event, s.action))
	if refused != "" {
		return refused
	}
	p.firing = Transition{Event: event, From: t.From, To: t.To}
	for _, effect := range t.Effects {
		effects[effect](p, s)
	}
	p.status().Phase, p.status().Archived = t.To.Phase(), t.To.Archived()
	noteAttemptEnd(p, s)
	p.plan.Transitions = append(p.plan.Transitions, p.firing)
	return ""
}

// fire is try for an event that is asked for only where it is possible.
func (p *pass) fire(event machine.Event, s subject) error {
	from := p.state()
	if refused := p.try(event, s); refused != "" {
		return fmt.Errorf("firing %s in state %s: refused with %s: %s", event, from, refused, refused.Meaning())
	}
	return nil
}

func (p *pass) machineFacts(event machine.Event, action v1beta1.GenerationAction) machine.Facts {
	st, held := p.status(), p.heldMessages()
	var isOverBudget, isReferenceMissing, mayBegin bool
	if event == machine.RecordAttempt {
		isOverBudget = overBudget(p, action) != nil
		isReferenceMissing = missingReference(p) != nil
		// What the step needs is asked for only if nothing else holds it: a held turn starts no workspace.
		mayBegin = !isOverBudget && !isReferenceMissing && !p.facts.Suspended
	}
	return machine.Facts{
		QueueLen:          len(st.Queue) - held,
		QueueCap:          int(p.chat.Spec.MaxQueueOrDefault()) - held, // They take room.
		CutInRoom:         v1beta1.RoomToCutIn,
		CallsUnread:       len(p.facts.Calls) == 0 || p.plan.Asks.Calls != "",
		Unanswered:        p.facts.Truncated != nil && p.facts.Truncated.Unanswered,
		Suspended:         p.facts.Suspended,
		ReferenceMissing:  isReferenceMissing,
		OverBudget:        isOverBudget,
		SubChatsAtWork:    mayBegin && subChatsAtWork(p),
		WorkspaceStarting: mayBegin && workspaceStarting(p),
		ServersStarting:   mayBegin && serversStarting(p, action),
		ModelLimited:      p.facts.ModelLimit != nil,
		NoCapacity:        p.facts.NoCapacity != "",
		PodRejected:       p.facts.PodRejected != "",
		RetryNotDue:       st.Retry != nil && p.facts.Now.Before(st.Retry.At.Time),
		FamilyBusy:        p.facts.FamilyAtWork != "",
		ParentArchived:    p.facts.ParentArchived,
		Clearable:         st.History.Length > st.History.ContextStart,
		Compactable:       compactable(p),
	}
}

// effects is how each effect changes the status. Of calls that are given up it keeps why; the results that say so are
// made where the prompt is built.
var effects = map[machine.Effect]func(*pass, subject){
	machine.EnqueueMessage: func(p *pass, s subject) {
		p.status().Queue = append(p.status().Queue, v1beta1.QueuedMessage{Name: s.message, Interrupts: s.interrupts})
	},
	machine.EnqueueCutIn: func(p *pass, s subject) { cutIn(p, s.message) },
	machine.ReorderQueue: func(p *pass, s subject) { cutIn(p, s.message) },
	machine.ClearQueue:   func(p *pass, _ subject) { clearQueue(p) },
	machine.TruncateFrom: func(p *pass, _ subject) { cutHistory(p) },
	machine.TakeHistory:  func(p *pass, s subject) { takeHistory(p, s.fork) },
	machine.AppendPartial: func(p *pass, s subject) {
		if s.result != nil {
			appendStep(p, s.result)
		}
	},
	machine.BeginContext: func(p *pass, _ subject) {
		beginContext(p, p.status().History.Length)
		p.status().Context = nil
	},
	machine.RemoveQueued: func(p *pass, s subject) {
		named := func(q v1beta1.QueuedMessage) bool { return q.Name == s.message }
		p.status().Queue = slices.DeleteFunc(p.status().Queue, named)
	},
	machine.AppendMessage: func(p *pass, s subject) { beginTurn(p, s.message) },
	machine.PromoteHead:   func(p *pass, _ subject) { promoteHead(p) },
	machine.AppendStep:    func(p *pass, s subject) { appendStep(p, s.result) },
	machine.BumpHistory:   func(p *pass, _ subject) { p.status().History.Version++ },
	machine.ResetAttempt: func(p *pass, _ subject) {
		setAttempt(p.status(), attemptRecord{})
		switch p.held {
		case machine.ReferenceMissing, machine.OverBudget, machine.RetryNotDue, machine.SubChatsAtWork,
			machine.WorkspaceStarting, machine.ServersStarting, machine.CallsUnread:
			// That held a step that is no more.
			p.held = ""
		}
	},
	machine.SetRetry:        func(p *pass, s subject) { setAttempt(p.status(), *s.retry) },
	machine.SetCompaction:   func(p *pass, s subject) { askCompaction(p, s.compaction) },
	machine.NextAttempt:     func(p *pass, s subject) { beginAttempt(p, s.action) },
	machine.SetError:        func(p *pass, s subject) { setError(p, s.err, s.action) },
	machine.ClearError:      func(p *pass, _ subject) { clearError(p) },
	machine.CancelCalls:     func(p *pass, _ subject) { cancelCalls(p) },
	machine.AppendResults:   func(p *pass, s subject) { appendResults(p, s.results) },
	machine.SetDeadline:     func(p *pass, _ subject) { setDeadline(p) },
	machine.ClearCompaction: func(p *pass, s subject) { forgetCompaction(p, s) },
	machine.ClearDeadline:   func(p *pass, s subject) { clearDeadline(p, s) },
	machine.EndTurn:         func(p *pass, s subject) { endTurn(p, s.ending, "") },
}
