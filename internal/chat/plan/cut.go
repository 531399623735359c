// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/machine"
)

// applyDeletion continues from what is left of the history if a message of it was deleted. An archived chat does so
// once it is taken back.
func applyDeletion(p *pass) error {
	if p.facts.Truncated == nil || p.status().Archived {
		return nil
	}
	accountDropped(p)
	if err := p.fire(machine.DeleteMessage, subject{}); err != nil {
		return err
	}
	return proceed(p)
}

// applyEdit begins the conversation again at a committed User message that was edited.
func applyEdit(p *pass) error {
	if p.facts.Edited == nil || p.facts.Truncated != nil || p.status().Archived {
		return nil
	}
	accountDropped(p)
	clearQueue(p) // Also what is held in a chat that is Waiting, of which the state machine does not know.
	if err := p.fire(machine.EditMessage, subject{message: p.facts.Edited.Name}); err != nil {
		return err
	}
	return proceed(p)
}

// accountDropped counts what the result of the attempt under way has used up, before a cut drops it: it is paid for.
func accountDropped(p *pass) {
	if attempts.AnswersCurrentAttempt(p.chat, p.status(), p.facts.Result) {
		accountStep(p, p.facts.Result)
	}
}

// cutHistory cuts the history: before the edited message, or where messages are missing.
func cutHistory(p *pass) {
	h := &p.status().History
	from := int64(0)
	begun, tail := recordOf(p.status()), p.status().Internal.Tail
	if t := p.facts.Truncated; t != nil {
		from = t.Length
		continueFrom(p, t)
	} else {
		e := p.facts.Edited
		h.Head, h.Length, from = e.Commit.Parent, e.Commit.Position, e.Commit.Position+1
		p.status().Internal.Tail = slices.Clone(e.Tail)
		p.status().Context = nil // The next reply tells.
	}
	supersedeTail(p, tail, from)
	recordCutTurn(p, begun)
	dropTitle(p)
	backToContext(p)
	p.status().Internal.Superseded = &v1beta1.SupersededRange{FromIndex: from, BeforeVersion: h.Version + 1}
}

// continueFrom makes the history what is described, with the turn and all else that follows from it.
func continueFrom(p *pass, t *Truncated) {
	st := p.status()
	st.History.Head, st.History.Length = t.Head, t.Length
	st.Internal.Tail = slices.Clone(t.Tail)
	setTurn(st, TurnRecord{t.Turn.DeepCopy(), *t.Turn.Internal.DeepCopy()})
	st.LastReply, st.Context = t.LastReply, t.Context
	conditions.MarkOutput(st, t.OutputOf, t.Output, p.facts.Now)
	if t.Unanswered {
		resumeTurn(p)
	}
}

// resumeTurn takes the turn up again whose message may say already how it ended. What is left of the turn stands
// where it stood, so its message does, too: versions only grow along a chain.
func resumeTurn(p *pass) {
	st := p.status()
	st.Internal.Turn.ResumedVersion = st.History.Version + 1
	st.Turn.StartedAt = new(metav1.NewMicroTime(p.facts.Now)) // It ends a second time.
}

// supersedeTail drops the messages of people and clients that have left the history and that only the chat's status
// said to be part of it. They may not say so themselves yet, and would be taken for new ones.
func supersedeTail(p *pass, tail []v1beta1.CommittedMessage, from int64) {
	for i := range tail {
		if tail[i].Position >= from {
			p.plan.Superseded = append(p.plan.Superseded, tail[i].Message)
		}
	}
}

// recordCutTurn says of the turn that was under way that it has ended,
// unless it continues where what is left of the history ends.
func recordCutTurn(p *pass, begun TurnRecord) {
	if begun.TurnStatus == nil || begun.Result != "" {
		return
	}
	if left := recordOf(p.status()); p.facts.Truncated != nil && sameTurn(begun, left) {
		if left.Result == "" {
			return
		}
		begun = left
	}
	p.firing.Ended = &TurnEnd{Turn: begun.DeepCopy()}
}

func sameTurn(a, b TurnRecord) bool {
	return b.TurnStatus != nil && a.Message == b.Message && a.HistoryVersion == b.HistoryVersion &&
		a.Internal.ResumedVersion == b.Internal.ResumedVersion
}

// putAside asks for the messages that left the history in an earlier pass.
func putAside(p *pass) error {
	p.plan.PutAside = p.status().Internal.Superseded != nil
	p.status().Internal.Superseded = nil
	return nil
}
