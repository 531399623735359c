// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

// summarized is a chat whose model writes summaries of turns.
func summarized(t *testing.T) *world {
	w := newWorld(t)
	w.facts = func(f *Facts) {
		f.Model.TurnSummaries = true
		f.HeadPod = "pod"
	}
	return w
}

// summary is what a model says of the turn that the version ended.
func (w *world) summary(text string, version int64, change func(*v1alpha1.MessageGeneration)) *v1alpha1.ChatMessage {
	m := &v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleAssistant,
		Generation: &v1alpha1.MessageGeneration{
			ChatUID: "u", HistoryVersion: version, Attempt: 1, Action: v1alpha1.ActionSummarizeTurn, Pod: "pod",
			Outcome: v1alpha1.OutcomeCompleted, TurnSummary: text,
			Usage: &v1alpha1.TokenUsage{InputTokens: 100, TotalTokens: 100},
			Cost:  &v1alpha1.Cost{Currency: "USD", MicroUnits: 5},
		}}}
	m.Name = fmt.Sprintf("c-%d-summary", version)
	if change != nil {
		change(m.Spec.Generation)
	}
	return m
}

func (w *world) wantSummary(text string, source v1alpha1.TurnSummarySource) *world {
	w.t.Helper()
	if got := w.chat.Status.Turn; got.Summary != text || got.SummarySource != source {
		w.t.Errorf("the summary is %q from %q, want %q from %q", got.Summary, got.SummarySource, text, source)
	}
	return w
}

func TestATurnSaysInFixedWordsHowItStands(t *testing.T) {
	const state = v1alpha1.TurnSummaryFromState
	w := summarized(t).say("a").wantSummary("Still working", state)
	w.answer(nil).wantSummary("Finished", state)
	w.say("b").wantSummary("Still working", state).answer(outcome(v1alpha1.OutcomeFailed)).wantSummary("Failed", state)
	w.say("c").wantSummary("Still working", state)
	w.ask(v1alpha1.RequestInterrupt).wantSummary("Still working", state)
	w.answer(outcome(v1alpha1.OutcomeInterrupted)).wantSummary("", "")
}

func TestATurnSaysNothingIfNobodyAskedForSummaries(t *testing.T) {
	newWorld(t).say("a").wantSummary("", "").answer(nil).wantSummary("", "")
}

func TestWhatAModelSaysOfATurnIsTakenOnceAndStays(t *testing.T) {
	w := summarized(t).say("a").answer(nil)
	before := w.chat.Status
	said := func(f *Facts) { f.Summary = w.summary("Found the leak", before.History.Version, nil) }
	w.pass(said).wantSummary("Found the leak", v1alpha1.TurnSummaryFromModel)
	w.pass(said).pass(nil).wantSummary("Found the leak", v1alpha1.TurnSummaryFromModel)
	after := w.chat.Status
	if after.Usage.TotalTokens != before.Usage.TotalTokens+100 || len(after.Cost) != 1 || after.Cost[0].MicroUnits != 5 {
		t.Errorf("the usage is %+v, the cost %+v", after.Usage, after.Cost)
	}
	if after.History.Version != before.History.Version || after.History.Head != before.History.Head ||
		after.History.Length != before.History.Length {
		t.Errorf("the history became %+v", after.History)
	}
	w.say("b").wantSummary("Still working", v1alpha1.TurnSummaryFromState)
}

func TestAModelThatHasNoWordsForATurnIsPaidOnceAndTheFixedOnesStay(t *testing.T) {
	w := summarized(t).say("a").answer(nil)
	before := w.chat.Status
	said := func(f *Facts) { f.Summary = w.summary("", before.History.Version, nil) }
	w.pass(said).pass(said).wantSummary("Finished", v1alpha1.TurnSummaryUnwritten)
	if got := w.chat.Status.Usage.TotalTokens; got != before.Usage.TotalTokens+100 {
		t.Errorf("the usage is %d", got)
	}
	w.say("b").wantSummary("Still working", v1alpha1.TurnSummaryFromState)
}

func TestASummaryCanComeBeforeItsReplyIsCommitted(t *testing.T) {
	w := summarized(t).say("a")
	w.facts = func(f *Facts) {
		f.Model.TurnSummaries = true
		f.Summary, f.HeadPod = w.summary("Found the leak", 2, nil), "pod"
	}
	w.pass(nil).wantSummary("Still working", v1alpha1.TurnSummaryFromState)
	w.answer(nil).wantSummary("Found the leak", v1alpha1.TurnSummaryFromModel)
}

func TestASummaryThatIsNotOfTheEndOfTheTurnIsIgnored(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MessageGeneration){
		"another version": func(g *v1alpha1.MessageGeneration) { g.HistoryVersion++ },
		"another pod":     func(g *v1alpha1.MessageGeneration) { g.Pod = "other" },
		"another chat":    func(g *v1alpha1.MessageGeneration) { g.ChatUID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			w := summarized(t).say("a").answer(nil)
			w.pass(func(f *Facts) { f.Summary = w.summary("Found the leak", w.chat.Status.History.Version, change) })
			w.wantSummary("Finished", v1alpha1.TurnSummaryFromState)
		})
	}
	t.Run("the chat has gone on", func(t *testing.T) {
		w := summarized(t).say("a").answer(nil)
		late := w.summary("Found the leak", w.chat.Status.History.Version, nil)
		w.pass(func(f *Facts) { f.Summary, f.Open = late, messages(false, "b") })
		w.wantSummary("Still working", v1alpha1.TurnSummaryFromState)
	})
}
