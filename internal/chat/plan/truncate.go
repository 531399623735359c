// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/machine"
)

// Truncated is what is left of a history of which a message was deleted.
type Truncated struct {
	// Head is the newest message that is left; empty if none is.
	Head string
	// Length is the number of messages that are left.
	Length int64
	// Turn that the newest message belongs to; nil if none is left.
	Turn *v1alpha1.TurnStatus
	// LastReply is the preview of the newest reply that is left.
	LastReply string
	// Context is how full the context was at that reply, or after the summary that follows it; nil if it is not known.
	Context *v1alpha1.ContextStatus
	// ContextAt is the index of that message.
	ContextAt int64
	// Unanswered is true when the newest message must be answered.
	Unanswered bool
}

// Rest describes the messages that are left of a history, oldest first.
func Rest(kept []*v1alpha1.ChatMessage) *Truncated {
	t := &Truncated{Length: int64(len(kept))}
	for i, m := range kept {
		t.Head = m.Name
		if m.Spec.Role == v1alpha1.RoleAssistant || m.Spec.Role == v1alpha1.RoleSystem {
			t.ContextAt = int64(i)
		}
		switch {
		case m.Spec.Role == v1alpha1.RoleUser:
			t.Turn = turnOf(m)
			t.Unanswered = true
		case t.Turn == nil:
		case m.Spec.Role == v1alpha1.RoleSystem: // The turn stands as it stood.
			t.Context = &v1alpha1.ContextStatus{Compacted: true}
		case m.Spec.Role == v1alpha1.RoleAssistant:
			t.reply(m)
		default:
			t.results(m)
		}
	}
	if t.Turn != nil && !t.Unanswered {
		t.Turn.Result = resultOf(kept)
		giveUpCalls(t.Turn, endedWithCalls(t.Turn.Result)) // As its end did: a compaction would wait for them for ever.
	}
	return t
}

func (t *Truncated) reply(m *v1alpha1.ChatMessage) {
	g := m.Spec.Generation
	t.LastReply, t.Context = g.Preview, g.Context
	t.Turn.Steps++
	t.Turn.LastRole, t.Turn.PendingCalls, t.Turn.AwaitingCalls = v1alpha1.RoleAssistant, g.PendingCalls, g.AwaitingCalls
	t.Turn.CallingMessage, t.Turn.CallsGivenUp, t.Turn.WaitsFor = "", "", pendingWaits(g.WaitsFor)
	if g.PendingCalls > 0 {
		t.Turn.CallingMessage = m.Name
	}
	t.Unanswered = g.PendingCalls > 0 && g.Outcome != v1alpha1.OutcomeInterrupted
}

// results counts the calls that a Tool message answers. Those that wait for people are answered after the others.
func (t *Truncated) results(m *v1alpha1.ChatMessage) {
	t.Turn.LastRole = v1alpha1.RoleTool
	t.Unanswered = true
	switch g := m.Spec.Generation; {
	case g == nil:
		n := history.NodeOf(m)
		t.Turn.Results = &v1alpha1.MessagePlace{Message: m.Name, Parent: n.Parent, Index: n.Index, HistoryVersion: n.Version, StoppedBy: m.Status.StoppedBy}
		left := max(0, t.Turn.AwaitingCalls-int32(len(m.Spec.Parts))) //nolint:gosec // At most 512, as the API bounds parts.
		t.Turn.PendingCalls, t.Turn.AwaitingCalls = left, left
	case t.Turn.PendingCalls > t.Turn.AwaitingCalls:
		t.Turn.PendingCalls = t.Turn.AwaitingCalls
		t.Unanswered = g.Outcome != v1alpha1.OutcomeInterrupted
	default:
		t.Turn.PendingCalls, t.Turn.AwaitingCalls = 0, 0
		t.Unanswered = g.Outcome != v1alpha1.OutcomeInterrupted
	}
	if m.Spec.Generation != nil {
		t.Turn.Advice += m.Spec.Generation.Advice
	}
	t.Turn.WaitsFor = waitsLeft(t.Turn)
	stop(t.Turn, stoppedBy(m))
}

// stoppedBy is the tool of the first result in the message that ends the turn; empty if none does.
func stoppedBy(m *v1alpha1.ChatMessage) string {
	if g := m.Spec.Generation; g != nil {
		return g.StoppedBy
	}
	return m.Status.StoppedBy
}

// resultOf is how the last turn ended, which its message says.
func resultOf(kept []*v1alpha1.ChatMessage) v1alpha1.TurnResult {
	for _, m := range slices.Backward(kept) {
		if m.Spec.Role != v1alpha1.RoleUser {
			continue
		}
		if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			switch ready.Reason {
			case v1alpha1.ReasonInterrupted:
				return v1alpha1.TurnInterrupted
			case v1alpha1.ReasonMaxStepsReached:
				return v1alpha1.TurnMaxStepsReached
			}
		}
		break
	}
	if g := kept[len(kept)-1].Spec.Generation; g != nil && g.Outcome == v1alpha1.OutcomeInterrupted {
		return v1alpha1.TurnInterrupted
	}
	return v1alpha1.TurnAnswered
}

func turnOf(m *v1alpha1.ChatMessage) *v1alpha1.TurnStatus {
	n := history.NodeOf(m)
	t := &v1alpha1.TurnStatus{
		Message: m.Name, Parent: n.Parent, Index: n.Index, HistoryVersion: n.Version, ResumedVersion: m.Status.ResumedVersion,
		ContentHash: m.Status.ContentHash, CallsGivenUpBefore: m.Status.CallsGivenUpBefore,
		LastRole: v1alpha1.RoleUser, ReasoningEffort: m.Spec.ReasoningEffort,
	}
	if ref := m.Spec.ModelConfigRef; ref != nil {
		t.ModelConfig = ref.Name
	}
	return t
}

// truncate goes on from what is left of the history if a message of it was deleted. An archived chat does so once it
// is taken back.
func (p *pass) truncate() error {
	if p.facts.Truncated == nil || p.status().Archived {
		return nil
	}
	if err := p.fire(machine.DeleteMessage, subject{}); err != nil {
		return err
	}
	return p.goOn()
}

// edit begins the conversation anew at a committed User message that was edited.
func (p *pass) edit() error {
	if p.facts.Edited == nil || p.facts.Truncated != nil || p.status().Archived {
		return nil
	}
	if err := p.fire(machine.EditMessage, subject{message: p.facts.Edited.Name}); err != nil {
		return err
	}
	return p.goOn()
}

// truncateFrom cuts the history: before the edited message, or where messages are missing.
func (p *pass) truncateFrom() {
	h := &p.status().History
	from := int64(0)
	begun := p.status().Turn
	if t := p.facts.Truncated; t != nil {
		h.Head, h.Length, from = t.Head, t.Length, t.Length
		p.status().Turn, p.status().LastReply, p.status().Context = t.Turn.DeepCopy(), t.LastReply, t.Context
		if t.Unanswered {
			p.resume()
		}
	} else {
		e := p.facts.Edited
		h.Head, h.Length, from = e.Parent, e.Index, e.Index+1
		p.status().Context = nil // The next reply tells.
	}
	p.dropTurn(begun, from)
	p.cutOff(begun)
	p.dropTitle()
	p.backToContext()
	if t := p.facts.Truncated; t != nil && t.ContextAt < h.ContextStart { // That was another context.
		p.status().Context = nil
	}
	h.Superseded = &v1alpha1.SupersededRange{FromIndex: from, BeforeVersion: h.Version + 1}
}

// resume takes the turn up again whose message may say already how it ended. What is left of the turn stands where it stood, so its
// message does, too: versions only grow along a chain.
func (p *pass) resume() {
	t := p.status().Turn
	t.ResumedVersion = p.status().History.Version + 1
	t.StartedAt = new(metav1.NewMicroTime(p.facts.Now)) // It ends a second time.
}

// dropTurn drops the message of the turn that was under way if it has left the history. It may not say yet that it was part of
// it, and would be taken for a new one.
func (p *pass) dropTurn(begun *v1alpha1.TurnStatus, from int64) {
	if begun != nil && begun.Index >= from {
		p.plan.Superseded = append(p.plan.Superseded, begun.Message)
	}
}

// cutOff says of the turn that was under way that it has ended, unless it continues where what is left of the history ends.
func (p *pass) cutOff(begun *v1alpha1.TurnStatus) {
	if begun == nil || begun.Result != "" {
		return
	}
	if left := p.status().Turn; p.facts.Truncated != nil && sameTurn(begun, left) {
		if left.Result == "" {
			return
		}
		begun = left
	}
	p.firing.Ended = &TurnEnd{Turn: begun.DeepCopy()}
}

func sameTurn(a, b *v1alpha1.TurnStatus) bool {
	return b != nil && a.Message == b.Message && a.HistoryVersion == b.HistoryVersion && a.ResumedVersion == b.ResumedVersion
}
