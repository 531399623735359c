// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/text/printable"
)

// Advance takes the chat as far as it can go without waiting. The error is a fault of Parley itself: the state machine
// refused what this package asked of it.
func Advance(f Facts) (Plan, error) {
	if f.PromptMissing {
		return Plan{Asks: Asks{Prompt: true}}, nil
	}
	p := &pass{facts: f, chat: f.Chat, plan: Plan{Status: *f.Chat.Status.DeepCopy()}}
	p.found = p.status().Generation
	p.underWay = p.found
	for _, step := range steps {
		if err := step(p); err != nil {
			return Plan{}, err
		}
	}
	p.plan.Begins = p.begins()
	p.plan.Asks.Pod = p.plan.Begins && f.Pod == ""
	settleReport(p)
	return p.plan, nil
}

// steps of a pass, in their order. Each one finds the chat as those before it have left it, and does nothing where its
// facts are not there.
var steps = []func(*pass) error{
	// Nothing else is possible in a combination that is no state.
	repairState,
	// What follows goes by the budgets.
	countDeletedSubChats,
	// What comes after this would find an archived chat, or one that was taken back and may work again.
	archive,
	// A deletion or an edit may promote a message.
	applyHolds,
	// It is about the status as it was read: a cut of this pass marks other messages,
	// which are put aside after it is written.
	putAside,
	// What follows may be about sub-chats that an earlier pass has decided to start.
	changeAgents,
	// The history comes before all that builds on it: what an attempt yielded, or a request asks for, may be about a
	// conversation that is no more. Where messages are missing, an edit is looked for in what is left, by the next pass.
	applyDeletion,
	applyEdit,
	// A message that was deleted from the queue must not be promoted by the end of a turn.
	dropDeletedQueued,
	// A result that is there counts, even if somebody asks to interrupt at the same time: it is paid for.
	settleAttempt,
	// An interruption ends what is under way, before new messages are taken up: they were sent to be answered.
	handleRequests,
	// People's decisions come before a client's results, which count only once nothing else is awaited, and both before
	// the deadline: who answers in time has answered, however late the pass is.
	takeDecisions,
	takeResults,
	expireAction,
	// Messages are taken up in the order of their creation: those in the queue came first.
	takeReleased,
	promoteQueued,
	takeOpenMessages,
	// Results that waited for decisions have nothing to wait for where a step before this has given the calls up.
	refuseEarlyResults,
	// A turn that ended in this pass may have been all that kept the chat from being archived.
	archive,
	// Last: a summary counts only if nothing else has happened since the reply that it is about.
	takeSummary,
}

// pass is one run of Advance: what it knows. What it does is in functions, with a file for each aspect of a chat.
type pass struct {
	facts Facts
	chat  *v1beta1.Chat
	plan  Plan
	// held is why work that is due may not begin; empty if it may.
	held machine.Reason
	// overBudget is why a budget holds the turn; nil if none does.
	overBudget *v1beta1.GenerationError
	// firing is the transition whose effects are being carried out.
	firing Transition
	// found is the attempt that was under way when the pass began.
	found *v1beta1.GenerationStatus
	// underWay is the attempt that was under way when the pass began, until it ends.
	underWay *v1beta1.GenerationStatus
	// early are results that came before the people's decisions that their calls wait for, too.
	early []clientResults
}

func (p *pass) status() *v1beta1.ChatStatus { return &p.plan.Status }

// begins reports whether the attempt under way is one that this pass begins.
func (p *pass) begins() bool {
	g := p.status().Generation
	return g != nil && g != p.found
}

func (p *pass) idle() bool {
	switch p.status().Phase {
	case "", v1beta1.ChatWaiting, v1beta1.ChatError:
		return true
	}
	return false
}

func (p *pass) notice(reason v1beta1.EventReason, action v1beta1.EventAction, note string) {
	p.plan.Notices = append(p.plan.Notices, Notice{Reason: reason, Action: action, Note: printable.Line(note)})
}

func (p *pass) state() machine.State {
	st := p.status()
	if st.History.Version == 0 {
		return machine.None
	}
	return machine.StateOf(st.Phase, len(st.Queue)-p.heldMessages(), st.Archived)
}
