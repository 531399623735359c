// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// bringStopping lets a client answer all that waits for one. The first of its calls is of the tool,
// which ends the turn.
func (w *world) bringStopping(tool string) *world {
	w.t.Helper()
	var ids []string
	calls := w.chat.Status.RequiresAction.ToolCalls
	for i := range calls {
		if calls[i].Kind == v1beta1.RequiresClient {
			if calls[i].Name = "tool"; tool != "" && len(ids) == 0 {
				calls[i].Name, w.chat.Spec.Tools = tool, &v1beta1.ChatTools{StopAfter: []string{tool}}
			}
			ids = append(ids, calls[i].ID)
		}
	}
	return w.bring(ids...)
}

// wantStopped checks how the turn ended.
func (w *world) wantStopped(tool string) *world {
	w.t.Helper()
	turn := w.chat.Status.Turn
	if turn.Result != v1beta1.TurnStoppedAfterTool || turn.StoppedBy != tool {
		w.t.Errorf("the turn ended as %s, by %q", turn.Result, turn.StoppedBy)
	}
	return w.wantReason(v1beta1.ReasonStoppedAfterTool)
}

func TestStoppedTurnLeavesNothingToTheNext(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1")).answer(chattest.Results("1"), chattest.StoppedBy("plan")).
		want("Waiting v3 c-2-1/3 - []").wantStopped("plan")
	w.say("b").want("Running v4 b/4 1:GenerateAssistant []")
	if got := w.chat.Status.Turn.StoppedBy; got != "" {
		t.Errorf("the next turn was stopped by %q", got)
	}
	w.answer(chattest.Calls("1")).answer(chattest.Results("1")).want("Running v6 c-5-1/6 1:GenerateAssistant []")
	w.answer(chattest.Says("hi")).want("Waiting v7 c-6-1/7 - []").wantReason(v1beta1.ReasonAnswered)
}

func TestStoppedTurnPromotesQueueInSameWrite(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1")).say("b").
		answer(chattest.Results("1"), chattest.StoppedBy("plan")).want("Running v4 b/4 1:GenerateAssistant []")
	w.wantTail(v1beta1.CommittedMessage{Message: "b", Parent: "c-2-1", Position: 3, HistoryVersion: 4,
		ContentHash: "hash of b", PreviousTurn: &v1beta1.TurnOutcome{Message: "a", Result: v1beta1.TurnStoppedAfterTool,
			StoppedBy: "plan"}})
}

func TestAClientsResultEndsTheTurn(t *testing.T) {
	w := waits(t, pending(v1beta1.RequiresClient, "1", "2")...).bringStopping("ticket").want("Waiting v3 results/3 - []").
		wantStopped("ticket")
	w.wantTail(v1beta1.CommittedMessage{Message: "results", Parent: "c-1-1", Position: 2, HistoryVersion: 3,
		StoppedBy: "ticket"})
	waits(t, pending(v1beta1.RequiresClient, "1")...).bringStopping("").
		want("Running v3 results/3 1:GenerateAssistant []")
}

func TestTurnStopsOnceAllCallsAreAnswered(t *testing.T) {
	ofPeople := append(pending(v1beta1.RequiresApproval, "2"), pending(v1beta1.RequiresClient, "3")...)
	asked := func(t *testing.T, first string) *world {
		t.Helper()
		w := newWorld(t).say("a").answer(chattest.Calls("1"), chattest.CallsRequiring(v1beta1.RequiresClient, "2", "3")).
			want("Running v2 c-1-1/2 1:ExecuteTools []")
		return w.pass(func(f *Facts) {
			f.Result, f.Calls = chattest.Answer(w.chat, chattest.Results("1"), chattest.StoppedBy(first)), ofPeople
		}).
			want("RequiresAction v3 c-2-1/3 - []")
	}
	for name, c := range map[string]struct{ own, client, approved, want string }{
		"by Parley's own":       {"plan", "", "", "plan"},
		"by the client's":       {"", "ticket", "", "ticket"},
		"by the approved one":   {"", "", "deploy", "deploy"},
		"by all, and the first": {"plan", "ticket", "deploy", "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			w := asked(t, c.own)
			w.approve("2", v1beta1.DecisionApprove).want("RequiresAction v3 c-2-1/3 - []")
			w.bringStopping(c.client).want("Running v4 results/4 1:ExecuteTools []")
			w.answer(chattest.Results("1"), chattest.StoppedBy(c.approved)).want("Waiting v5 c-4-1/5 - []").wantStopped(c.want)
		})
	}
	t.Run("by none", func(t *testing.T) {
		w := asked(t, "")
		w.approve("2", v1beta1.DecisionDeny)
		w.bringStopping("").answer(chattest.Results("1"), chattest.StoppedBy("")).
			want("Running v5 c-4-1/5 1:GenerateAssistant []")
	})
}

func TestTurnStopsThoughOtherCallsAreGivenUp(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1"), chattest.CallsRequiring(v1beta1.RequiresClient, "2"))
	w.pass(func(f *Facts) {
		f.Result, f.Calls = chattest.Answer(w.chat, chattest.Results("1"), chattest.StoppedBy("plan")),
			pending(v1beta1.RequiresClient, "2")
	})
	w.pass(func(f *Facts) { f.Now = now.Add(v1beta1.DefaultActionDeadline) }).want("Waiting v4 c-2-1/3 - []").
		wantStopped("plan")
}

func TestAnInterruptedBatchEndsTheTurnAsInterrupted(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1")).ask(v1beta1.RequestInterrupt)
	w.answer(chattest.Results("1"), chattest.StoppedBy("plan")).want("Waiting v3 c-2-1/3 - []").
		wantReason(v1beta1.ReasonInterrupted)
}

func TestStoppedTurnStaysStoppedAcrossACompaction(t *testing.T) {
	w := newWorld(t)
	w.facts = limit(100, 70)
	w.say("a").answer(chattest.Calls("1"), chattest.Fills(95, 1)).
		answer(chattest.Results("1"), chattest.StoppedBy("plan")).want("Waiting v3 c-2-1/3 - []").wantStopped("plan")
	w.ask(v1beta1.RequestCompact).want("Running v4 c-2-1/3 1:Compact []")
	w.answer(chattest.Compacts("They spoke.", chattest.From(3))).want("Waiting v5 c-4-1/4 - []").wantStopped("plan")
}

func TestCutHistoryTellsWhetherItsTurnIsStopped(t *testing.T) {
	user := question("a")
	calling := chattest.Generated("call", v1beta1.RoleAssistant, chattest.Calls("1"))
	ofClient := chattest.Generated("call", v1beta1.RoleAssistant, chattest.CallsRequiring(v1beta1.RequiresClient, "1"))
	own := chattest.Generated("own", v1beta1.RoleTool, chattest.Results("1"), chattest.StoppedBy("plan"))
	summary := chattest.Generated("summary", v1beta1.RoleSystem, chattest.Compacts("They spoke."))
	client := chattest.Brings("c", "client", v1beta1.ToolResult{ID: "1", Output: "1"})
	client.Status = v1beta1.ChatMessageStatus{Index: new(int64(2)), StoppedBy: "ticket"}
	for name, c := range map[string]struct {
		kept []*v1beta1.ChatMessage
		want string
		by   string
	}{
		"with Parley's result":   {[]*v1beta1.ChatMessage{user, calling, own}, "Waiting v8 own/3 - []", "plan"},
		"with a client's result": {[]*v1beta1.ChatMessage{user, ofClient, client}, "Waiting v8 client/3 - []", "ticket"},
		"and a summary":          {[]*v1beta1.ChatMessage{user, calling, own, summary}, "Waiting v8 summary/4 - []", "plan"},
		"without the result":     {[]*v1beta1.ChatMessage{user, calling}, "Running v8 call/2 1:ExecuteTools []", ""},
		"of an earlier turn": {[]*v1beta1.ChatMessage{user, calling, own, user}, "Running v8 a/4 1:GenerateAssistant []",
			""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(chattest.Calls("1")).answer(chattest.Results("1"), chattest.StoppedBy("plan")).
				say("b").answer(chattest.Says("hi")).say("c").answer(chattest.Says("hi")).
				want("Waiting v7 c-6-1/7 - []")
			w.pass(func(f *Facts) { f.Truncated = rest(c.kept) }).want(c.want)
			if got := w.chat.Status.Turn.StoppedBy; got != c.by {
				t.Errorf("the turn is stopped by %q", got)
			}
			if c.by != "" {
				w.wantStopped(c.by)
			}
		})
	}
}

func TestEditedMessageIsAnsweredAfterStoppedTurn(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1")).answer(chattest.Results("1"), chattest.StoppedBy("plan")).
		edit("a", "", 0).
		want("Running v4 a/1 1:GenerateAssistant []")
	if got := w.chat.Status.Turn.StoppedBy; got != "" {
		t.Errorf("the turn is stopped by %q", got)
	}
}

func TestFirstSuccessfulStopAfterCallIsFound(t *testing.T) {
	right := func(id string) v1beta1.ToolResult { return v1beta1.ToolResult{ID: id} }
	wrong := func(id string) v1beta1.ToolResult { return v1beta1.ToolResult{ID: id, IsError: true} }
	for name, c := range map[string]struct {
		stopAfter []string
		results   []v1beta1.ToolResult
		want      string
	}{
		"no list": {nil, []v1beta1.ToolResult{right("1"), right("2")}, ""},
		"in the order of the calls": {[]string{"page", "ticket"}, []v1beta1.ToolResult{right("2"), right("1")},
			"ticket"},
		"the first has failed": {[]string{"page", "ticket"}, []v1beta1.ToolResult{wrong("1"), right("2")}, "page"},
		"all have failed":      {[]string{"page", "ticket"}, []v1beta1.ToolResult{wrong("1"), wrong("2")}, ""},
		"another tool":         {[]string{"deploy"}, []v1beta1.ToolResult{right("1"), right("2")}, ""},
		"what a client says it is": {[]string{"deploy"}, []v1beta1.ToolResult{{ID: "1", Name: "deploy"}, right("2")},
			""},
		"a call that waits for approval": {[]string{"approved"}, []v1beta1.ToolResult{right("1"), right("2")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chat := chattest.Generating()
			chat.Spec.Tools = &v1beta1.ChatTools{StopAfter: c.stopAfter}
			chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{ToolCalls: []v1beta1.PendingToolCall{
				{ID: "0", Name: "approved", Kind: v1beta1.RequiresApproval},
				{ID: "1", Name: "ticket", Kind: v1beta1.RequiresClient}, {ID: "2", Name: "page", Kind: v1beta1.RequiresClient},
			}}
			p := &pass{chat: chat, plan: Plan{Status: chat.Status}}
			if got := compareResults(p, bringing("results", c.results...)); got.problem != "" || got.stoppedBy != c.want {
				t.Errorf("%q ends the turn, want %q: %s", got.stoppedBy, c.want, got.problem)
			}
		})
	}
}

func TestResultsStopTurnBeforeMessageStatusUpdate(t *testing.T) {
	chat := chattest.Generating()
	chat.Status.History = v1beta1.HistoryStatus{Version: 3, Head: "results", Length: 3}
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "a", HistoryVersion: 1}
	chat.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "results", Parent: "c-1-1", Position: 2,
		HistoryVersion: 3, StoppedBy: "ticket"}}
	before := newWorld(t).say("a").chat
	before.UID = chat.UID
	reply := chattest.Answer(before, chattest.CallsRequiring(v1beta1.RequiresClient, "1"))
	whole := WholeOf(chat, []v1beta1.ChatMessage{*question("a"), *reply,
		*bringing("results", v1beta1.ToolResult{ID: "1"})})
	if whole.Missing != 3 || len(whole.Messages) != 3 {
		t.Fatalf("%d messages are left, the first one missing is %d", len(whole.Messages), whole.Missing)
	}
	rest := whole.Rest()
	if got := rest.Turn; got.StoppedBy != "ticket" || got.Internal.Results.Position != 2 ||
		got.Internal.ContentHash != "hash of a" {
		t.Errorf("the turn is %+v, %+v", got.TurnStatus, got.Internal)
	}
	if diff := cmp.Diff(chat.Status.Internal.Tail, rest.Tail); diff != "" {
		t.Errorf("the tail is not the chat's (-want +got):\n%s", diff)
	}
}
