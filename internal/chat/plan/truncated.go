// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/history"
)

// Truncated is what is left of a history of which a message was deleted.
type Truncated struct {
	// Head is the newest message that is left; empty if none is.
	Head string
	// Length is the number of messages that are left.
	Length int64
	// Tail are the commits behind the newest generated message that is left.
	Tail []v1beta1.CommittedMessage
	// Turn that the newest message belongs to; its TurnStatus is nil if none is left.
	Turn TurnRecord
	// LastReply is the preview of the newest reply that is left.
	LastReply string
	// Output is that of the turn's newest reply, and OutputOf the name of that; nil if it is no answer in a form.
	Output   *v1beta1.MessageOutput
	OutputOf string
	// Context is how full the context was at that reply, or after the summary that follows it; nil if it is not known.
	Context *v1beta1.ContextStatus
	// ContextAt is the index of that message.
	ContextAt int64
	// Unanswered is true when the newest message must be answered.
	Unanswered bool
}

// Rest describes what is left of the history.
func (w *Whole) Rest() *Truncated {
	t := rest(w.Messages)
	t.Tail = history.Tail(w.Chain)
	return t
}

// rest describes the messages that are left of a history, oldest first.
func rest(kept []*v1beta1.ChatMessage) *Truncated {
	t := &Truncated{Length: int64(len(kept))}
	for i, m := range kept {
		t.Head = m.Name
		if m.Spec.Role == v1beta1.RoleAssistant || m.Spec.Role == v1beta1.RoleSystem {
			t.ContextAt = int64(i)
		}
		switch {
		case m.Spec.Role == v1beta1.RoleUser:
			t.Turn, t.Output = turnOf(m), nil
			t.Unanswered = m.Spec.LastRole() != v1beta1.RoleAssistant
		case t.Turn.TurnStatus == nil:
		case m.Spec.Role == v1beta1.RoleSystem: // The turn stands as it stood.
			t.Context = &v1beta1.ContextStatus{Compacted: true}
		case m.Spec.Role == v1beta1.RoleAssistant:
			t.reply(m)
		default:
			t.results(m)
		}
	}
	if t.Turn.TurnStatus != nil && !t.Unanswered {
		t.Turn.Result = resultOf(kept)
		// As its end did: a compaction would wait for them for ever.
		cancelPendingCalls(t.Turn.TurnStatus, &t.Turn.Internal, cancelReasonOf(t.Turn.Result))
	}
	return t
}

func (t *Truncated) reply(m *v1beta1.ChatMessage) {
	g := m.Spec.Generation
	t.LastReply, t.Context, t.Output, t.OutputOf = g.Preview, g.Context, g.Output, m.Name
	t.Turn.Steps++
	t.Turn.Internal.LastRole = v1beta1.RoleAssistant
	in := &t.Turn.Internal
	noteCalls(t.Turn.TurnStatus, in, m)
	again := in.InvalidOutputs > 0 && in.InvalidOutputs < v1beta1.MaxOutputTries
	t.Unanswered = (g.PendingCalls > 0 || g.ReplyOutcome == v1beta1.ReplyPaused || again) &&
		g.Outcome != v1beta1.OutcomeInterrupted
}

// results counts the calls that a Tool message answers. Those that wait for people are answered after the others.
func (t *Truncated) results(m *v1beta1.ChatMessage) {
	in := &t.Turn.Internal
	in.LastRole = v1beta1.RoleTool
	t.Unanswered = true
	switch g := m.Spec.Generation; {
	case g == nil:
		in.Results = &v1beta1.ClientResults{Message: m.Name, Position: history.NodeOf(m).Index}
		left := max(0, in.CallsRequiringAction-int32(len(m.Spec.Parts))) // At most 512, as the API bounds parts.
		in.PendingCalls, in.CallsRequiringAction = left, left
	case in.PendingCalls > in.CallsRequiringAction:
		in.PendingCalls = in.CallsRequiringAction
		t.Unanswered = g.Outcome != v1beta1.OutcomeInterrupted
	default:
		in.PendingCalls, in.CallsRequiringAction = 0, 0
		t.Unanswered = g.Outcome != v1beta1.OutcomeInterrupted
	}
	if g := m.Spec.Generation; g != nil { // The results of a client leave questions of other calls open.
		noteQuestions(in, m)
		t.Turn.Advice += g.Advice
		t.Turn.PlanApproved = t.Turn.PlanApproved || g.PlanApproved
	}
	t.Turn.WaitingFor = stillWaiting(t.Turn.TurnStatus, in)
	recordStopTool(t.Turn.TurnStatus, stoppedBy(m))
}

// stoppedBy is the tool of the first result in the message that ends the turn; empty if none does.
func stoppedBy(m *v1beta1.ChatMessage) string {
	if g := m.Spec.Generation; g != nil {
		return g.StoppedBy
	}
	return m.Status.StoppedBy
}

// resultOf is how the last turn ended, which its message says.
func resultOf(kept []*v1beta1.ChatMessage) v1beta1.TurnResult {
	for _, m := range slices.Backward(kept) {
		if m.Spec.Role != v1beta1.RoleUser {
			continue
		}
		switch v1beta1.ReasonOf(meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady)) {
		case v1beta1.ReasonInterrupted:
			return v1beta1.TurnInterrupted
		case v1beta1.ReasonMaxStepsReached:
			return v1beta1.TurnMaxStepsReached
		}
		break
	}
	switch g := kept[len(kept)-1].Spec.Generation; {
	case g == nil:
		return v1beta1.TurnAnswered
	case g.Outcome == v1beta1.OutcomeInterrupted:
		return v1beta1.TurnInterrupted
	default:
		return conditions.ResultOf(g.ReplyOutcome)
	}
}

func turnOf(m *v1beta1.ChatMessage) TurnRecord {
	n := history.NodeOf(m)
	t := TurnRecord{&v1beta1.TurnStatus{
		Message: m.Name, Parent: n.Parent, Index: n.Index, HistoryVersion: n.Version, ReasoningEffort: m.Spec.ReasoningEffort,
	}, v1beta1.TurnInternalStatus{
		ResumedVersion: m.Status.ResumedVersion, ContentHash: m.Status.ContentHash,
		CallsCanceledReasonBefore: m.Status.CallsCanceledReasonBefore, LastRole: m.Spec.LastRole(), MessageUID: string(m.UID),
	}}
	if ref := m.Spec.ModelConfigRef; ref != nil {
		t.ModelConfig = ref.Name
	}
	return t
}

// Whole is the part of a chat's history before the first message that is missing.
type Whole struct {
	// Chain is where its messages stand, oldest first, and Messages what they say, each with the status that follows from
	// its commit.
	Chain    []history.Node
	Messages []*v1beta1.ChatMessage
	// Missing is the index of that message; the length of the history if none is missing.
	Missing int64
}

// IndexOf is the index of a message of a person or a client in the chain; -1 if it is not part of it.
func (w *Whole) IndexOf(m *v1beta1.ChatMessage) int {
	return slices.IndexFunc(w.Chain, func(n history.Node) bool {
		return n.Name == m.Name && n.UID == string(m.UID) && n.Commit != nil
	})
}

// WholeOf finds the part of the history before the first of the messages that is missing.
func WholeOf(chat *v1beta1.Chat, messages []v1beta1.ChatMessage) Whole {
	byName := make(map[string]*v1beta1.ChatMessage, len(messages))
	outcomes := map[string]*v1beta1.TurnOutcome{}
	for i := range messages {
		byName[messages[i].Name] = &messages[i]
		noteOutcomes(outcomes, messages[i].Spec.Follows)
	}
	noteOutcomes(outcomes, chat.Status.Internal.Tail)
	if t := chat.Status.Turn; t != nil {
		outcomes[t.Message] = conditions.OutcomeOf(t, &chat.Status.Internal.Turn, nil)
	}
	var w Whole
	w.Chain, w.Missing = history.Whole(history.RefOf(chat), history.Nodes(chat, messages))
	for _, n := range w.Chain {
		m := byName[n.Name]
		if n.Commit != nil {
			conditions.Commit(&m.Status, string(chat.UID), n.Commit)
		}
		if outcome := outcomes[m.Name]; outcome != nil && m.Spec.Role == v1beta1.RoleUser {
			m.Status.ResumedVersion = outcome.ResumedVersion
			if outcome.Result != "" {
				conditions.Message(&m.Status, conditions.OfTurn(outcome), m.Generation, time.Time{})
			}
		}
		w.Messages = append(w.Messages, m)
	}
	w.Missing = min(w.Missing, chat.Status.History.Length)
	return w
}

// noteOutcomes notes how turns ended, by the messages that began them: the commit of the message of the next turn says
// it.
func noteOutcomes(outcomes map[string]*v1beta1.TurnOutcome, recorded []v1beta1.CommittedMessage) {
	for i := range recorded {
		if outcome := recorded[i].PreviousTurn; outcome != nil {
			outcomes[outcome.Message] = outcome
		}
	}
}
