// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/fence"
)

// summaries are what is said of a turn in fixed words, unless a model said something better.
var summaries = map[v1beta1.ChatPhase]string{
	v1beta1.ChatWaiting:        "Finished",
	v1beta1.ChatRunning:        "Still working",
	v1beta1.ChatInterrupting:   "Still working",
	v1beta1.ChatRequiresAction: "Waiting for input",
	v1beta1.ChatError:          "Failed",
}

// endedWithReply reports whether a turn ended with a reply, of which a model may say more.
func endedWithReply(result v1beta1.TurnResult) bool {
	return result == v1beta1.TurnAnswered || result == v1beta1.TurnMaxTokensReached || result == v1beta1.TurnRefused
}

// takeSummary takes what a model says of the turn that has just ended. It is too late once anything else has happened
// to the history, and only the pod that gave the last reply may say it.
func takeSummary(p *pass) error {
	st := p.status()
	if st.Phase != v1beta1.ChatWaiting || st.Turn == nil || !endedWithReply(st.Turn.Result) ||
		st.Turn.SummarySource != v1beta1.TurnSummaryFromState {
		return nil
	}
	if name := fence.SummaryName(p.chat.Name, st.History.Version); p.facts.SummaryName != name {
		p.plan.Asks.Summary = name
		return nil
	}
	summary := p.facts.Summary
	if summary == nil || !describesHead(p, summary.Spec.Generation) {
		return nil
	}
	g := summary.Spec.Generation
	if st.Turn.Summary, st.Turn.SummarySource = g.TurnSummary, v1beta1.TurnSummaryFromModel; g.TurnSummary == "" {
		st.Turn.Summary, st.Turn.SummarySource = summaries[st.Phase], v1beta1.TurnSummaryUnavailable
	}
	accountStep(p, summary)
	return nil
}

// describesHead reports whether the pod that gave the newest reply says this of the history that ends with it.
func describesHead(p *pass, g *v1beta1.MessageGeneration) bool {
	now := attempts.Of(p.chat.UID, p.status())
	return g.ChatUID == now.ChatUID && g.HistoryVersion == now.HistoryVersion && g.Pod == p.facts.HeadPod
}

// hasModelSummary reports whether a model has been asked what became of the turn, and has been paid for it.
func hasModelSummary(t *v1beta1.TurnStatus) bool {
	return t.SummarySource == v1beta1.TurnSummaryFromModel || t.SummarySource == v1beta1.TurnSummaryUnavailable
}

// settleSummary says how the turn stands where no model has said what became of it.
func settleSummary(p *pass) {
	t := p.status().Turn
	if t == nil || hasModelSummary(t) && t.Result != "" {
		return
	}
	t.Summary, t.SummarySource = "", ""
	model, _ := modelNamed(p, Message{Name: t.Message, ModelConfig: t.ModelConfig})
	if model != nil && model.TurnSummaries && t.Result != v1beta1.TurnInterrupted {
		t.Summary, t.SummarySource = summaries[p.status().Phase], v1beta1.TurnSummaryFromState
	}
}
