// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
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
func (w *world) summary(text string, version int64, change func(*v1beta1.MessageGeneration)) *v1beta1.ChatMessage {
	reply := chattest.Generated("reply", v1beta1.RoleAssistant, chattest.Says("hi"))
	reply.Spec.ChatRef.Name = "c"
	g := reply.Spec.Generation
	g.ChatUID, g.HistoryVersion, g.Pod = "u", version-1, "pod"
	m := chattest.TurnSummary(reply, text)
	chattest.Costs(5)(m)
	if change != nil {
		change(m.Spec.Generation)
	}
	return m
}

func (w *world) wantSummary(text string, source v1beta1.TurnSummarySource) *world {
	w.t.Helper()
	if got := w.chat.Status.Turn; got.Summary != text || got.SummarySource != source {
		w.t.Errorf("the summary is %q from %q, want %q from %q", got.Summary, got.SummarySource, text, source)
	}
	return w
}

func TestTurnSummaryReflectsState(t *testing.T) {
	const state = v1beta1.TurnSummaryFromState
	w := summarized(t).say("a").wantSummary("Still working", state)
	w.answer(chattest.Says("hi")).wantSummary("Finished", state)
	w.say("b").wantSummary("Still working", state).answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).
		wantSummary("Failed", state)
	w.say("c").wantSummary("Still working", state)
	w.ask(v1beta1.RequestInterrupt).wantSummary("Still working", state)
	w.answer(chattest.Interrupted()).wantSummary("", "")
}

func TestTurnHasNoSummaryWhenNotRequested(t *testing.T) {
	newWorld(t).say("a").wantSummary("", "").answer(chattest.Says("hi")).wantSummary("", "")
}

func TestTurnSummaryIsTakenOnce(t *testing.T) {
	w := summarized(t).say("a").answer(chattest.Says("hi"))
	before := w.chat.Status
	said := func(f *Facts) { f.Summary = w.summary("Found the leak", before.History.Version, nil) }
	w.pass(said).wantSummary("Found the leak", v1beta1.TurnSummaryFromModel)
	w.pass(said).pass(nil).wantSummary("Found the leak", v1beta1.TurnSummaryFromModel)
	after := w.chat.Status
	if after.Usage.TotalTokens != before.Usage.TotalTokens+4 || len(after.Cost) != 1 || after.Cost[0].MicroUnits != 5 {
		t.Errorf("the usage is %+v, the cost %+v", after.Usage, after.Cost)
	}
	if after.History.Version != before.History.Version || after.History.Head != before.History.Head ||
		after.History.Length != before.History.Length {
		t.Errorf("the history became %+v", after.History)
	}
	w.say("b").wantSummary("Still working", v1beta1.TurnSummaryFromState)
}

func TestEmptyTurnSummaryIsPaidOnce(t *testing.T) {
	w := summarized(t).say("a").answer(chattest.Says("hi"))
	before := w.chat.Status
	said := func(f *Facts) { f.Summary = w.summary("", before.History.Version, nil) }
	w.pass(said).pass(said).wantSummary("Finished", v1beta1.TurnSummaryUnavailable)
	if got := w.chat.Status.Usage.TotalTokens; got != before.Usage.TotalTokens+4 {
		t.Errorf("the usage is %d", got)
	}
	w.say("b").wantSummary("Still working", v1beta1.TurnSummaryFromState)
}

func TestSummaryMayPrecedeCommitOfItsReply(t *testing.T) {
	w := summarized(t).say("a")
	w.facts = func(f *Facts) {
		f.Model.TurnSummaries = true
		f.Summary, f.HeadPod = w.summary("Found the leak", 2, nil), "pod"
	}
	w.pass(nil).wantSummary("Still working", v1beta1.TurnSummaryFromState)
	w.answer(chattest.Says("hi")).wantSummary("Found the leak", v1beta1.TurnSummaryFromModel)
}

func TestSummaryOfAnotherTurnIsIgnored(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.MessageGeneration){
		"another version": func(g *v1beta1.MessageGeneration) { g.HistoryVersion++ },
		"another pod":     func(g *v1beta1.MessageGeneration) { g.Pod = "other" },
		"another chat":    func(g *v1beta1.MessageGeneration) { g.ChatUID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			w := summarized(t).say("a").answer(chattest.Says("hi"))
			w.pass(func(f *Facts) { f.Summary = w.summary("Found the leak", w.chat.Status.History.Version, change) })
			w.wantSummary("Finished", v1beta1.TurnSummaryFromState)
		})
	}
	t.Run("the chat has gone on", func(t *testing.T) {
		w := summarized(t).say("a").answer(chattest.Says("hi"))
		late := w.summary("Found the leak", w.chat.Status.History.Version, nil)
		w.pass(func(f *Facts) { f.Summary, f.Open = late, messages(false, "b") })
		w.wantSummary("Still working", v1beta1.TurnSummaryFromState)
	})
}
