// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// question is a person's message as it is read.
func question(name string) *v1beta1.ChatMessage { return chattest.User("c", name, chattest.Defaulted) }

func pending(kind v1beta1.RequiredAction, ids ...string) (all []v1beta1.PendingToolCall) {
	for _, id := range ids {
		all = append(all, v1beta1.PendingToolCall{ID: id, Name: "tool", Kind: kind})
	}
	return all
}

// waits is a chat that waits for the calls.
func waits(t *testing.T, waiting ...v1beta1.PendingToolCall) *world {
	t.Helper()
	w := newWorld(t).say("a")
	calls := make([]v1beta1.ToolCall, len(waiting))
	for i, call := range waiting {
		calls[i] = v1beta1.ToolCall{ID: call.ID, Name: call.Name, RequiresAction: call.Kind}
	}
	w.pass(func(f *Facts) { f.Result, f.Calls = chattest.Answer(w.chat, chattest.CallsOf(calls...)), waiting })
	return w.want("RequiresAction v2 c-1-1/2 - []")
}

// brought is a client's message with results of these calls.
func brought(ids ...string) *v1beta1.ChatMessage {
	results := make([]v1beta1.ToolResult, 0, len(ids))
	for _, id := range ids {
		results = append(results, v1beta1.ToolResult{ID: id})
	}
	return bringing("results", results...)
}

// bringing is a client's message with these results; an output that is left out is 1.
func bringing(name string, results ...v1beta1.ToolResult) *v1beta1.ChatMessage {
	for i := range results {
		if results[i].Output == "" {
			results[i].Output = "1"
		}
	}
	return chattest.Brings("c", name, results...)
}

// bring lets a client give results of these calls.
func (w *world) bring(ids ...string) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) { f.Results = []*v1beta1.ChatMessage{brought(ids...)} })
}

func (w *world) approve(id string, decision v1beta1.ApprovalDecision) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) {
		f.Approvals = []Approval{{v1beta1.ToolDecision{ID: id, Decision: decision, Approval: "approval of " + id}}}
	})
}

func TestDecisionAboutSomethingElseDoesNotApply(t *testing.T) {
	calls := pending(v1beta1.RequiresApproval, "1")
	calls[0].Digest = "seen"
	w := waits(t, calls...)
	w.pass(func(f *Facts) {
		f.Approvals = []Approval{{v1beta1.ToolDecision{ID: "1", Decision: v1beta1.DecisionApprove, Digest: "other",
			Approval: "wrong"}}}
	})
	if got := w.last; len(got.Mismatched) != 1 || got.Mismatched[0] != "wrong" ||
		len(got.Applied)+len(got.NotPending) > 0 {
		t.Errorf("applied %v, mismatched %v, not pending %v", got.Applied, got.Mismatched, got.NotPending)
	}
	w.want("RequiresAction v2 c-1-1/2 - []")
}

func TestAdvanceLeavesItsFactsAlone(t *testing.T) {
	w := newWorld(t).say("a")
	w.pass(func(f *Facts) {
		f.Result, f.Calls = chattest.Answer(w.chat, chattest.CallsRequiring(v1beta1.RequiresApproval, "1")),
			pending(v1beta1.RequiresApproval, "1")
		f.Approvals = []Approval{{v1beta1.ToolDecision{ID: "1", Decision: v1beta1.DecisionApprove, Approval: "early"}}}
	})
	again, err := Advance(w.f)
	if err != nil || len(w.last.Applied) != 1 || !equality.Semantic.DeepEqual(again.Applied, w.last.Applied) {
		t.Errorf("at first %v are applied, and once more %v (%v)", w.last.Applied, again.Applied, err)
	}
}

func TestAClientsResultsGoOnWithTheTurn(t *testing.T) {
	w := waits(t, pending(v1beta1.RequiresClient, "1", "2")...)
	if got := w.chat.Status.RequiresAction; len(got.ToolCalls) != 2 || !got.Deadline.Equal(new(got.Deadline)) ||
		got.Deadline.Sub(now) != v1beta1.DefaultActionDeadline {
		t.Errorf("required is %+v", got)
	}
	w.bring("1", "2").want("Running v3 results/3 1:GenerateAssistant []")
	want := []v1beta1.CommittedMessage{{Message: "results", Parent: "c-1-1", Position: 2, HistoryVersion: 3}}
	if diff := cmp.Diff(want, w.chat.Status.Internal.Tail); diff != "" {
		t.Errorf("the commit of the results is not that (-want +got):\n%s", diff)
	}
	if w.chat.Status.RequiresAction != nil {
		t.Error("the deadline stays")
	}
}

func TestWrongResultsAreRefusedAndChangeNothing(t *testing.T) {
	for name, c := range map[string]struct {
		results []v1beta1.ToolResult
		says    string
	}{
		"half of the results": {[]v1beta1.ToolResult{{ID: "1"}},
			"Tool call 2 has no result, and all must be answered in one message"},
		"one twice":           {[]v1beta1.ToolResult{{ID: "1"}, {ID: "1"}}, "Tool call 1 has two results"},
		"one of another call": {[]v1beta1.ToolResult{{ID: "1"}, {ID: "2"}, {ID: "3"}}, "No tool call 3 waits for a client"},
		"one that is no JSON": {[]v1beta1.ToolResult{{ID: "1"}, {ID: "2", Output: "{"}},
			"The output for tool call 2 is not valid JSON"},
	} {
		w := waits(t, pending(v1beta1.RequiresClient, "1", "2")...)
		w.pass(func(f *Facts) { f.Results = []*v1beta1.ChatMessage{bringing("results", c.results...)} }).
			want("RequiresAction v2 c-1-1/2 - []")
		got, says := w.last.Rejected, c.says+": delete this message and create a right one"
		if len(got) != 1 || got[0].Reason != v1beta1.ReasonResultsInvalid || got[0].Note != says {
			t.Errorf("%s: rejected %+v", name, got)
		}
	}
	w := newWorld(t).say("a").bring("1").want("Running v1 a/1 1:GenerateAssistant []")
	if len(w.last.Rejected) != 1 {
		t.Error("results that nobody asked for are not refused")
	}
}

func TestParleysOwnCallsRunBeforePeopleAreAsked(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1"), chattest.CallsRequiring(v1beta1.RequiresClient, "2", "3")).
		want("Running v2 c-1-1/2 1:ExecuteTools []")
	w.pass(func(f *Facts) {
		f.Result, f.Calls = chattest.Answer(w.chat, chattest.Results("1")), pending(v1beta1.RequiresClient, "2", "3")
	})
	w.want("RequiresAction v3 c-2-1/3 - []")
	w.bring("2", "3").want("Running v4 results/4 1:GenerateAssistant []")
}

func TestDecidedCallsAreRunOnceAllAreDecided(t *testing.T) {
	w := waits(t, pending(v1beta1.RequiresApproval, "1", "2")...)
	w.approve("1", v1beta1.DecisionApprove).want("RequiresAction v2 c-1-1/2 - []")
	w.approve("2", v1beta1.DecisionDeny).want("Running v3 c-1-1/2 1:ExecuteTools []")
	if got := w.chat.Status.Internal.Turn.Decisions; len(got) != 2 || got[0].Decision != v1beta1.DecisionApprove ||
		got[1].Decision != v1beta1.DecisionDeny {
		t.Errorf("decisions are %+v", got)
	}
	w.answer(chattest.Results("1")).want("Running v4 c-3-1/3 1:GenerateAssistant []")
	if w.chat.Status.Internal.Turn.Decisions != nil {
		t.Error("decisions outlive their calls")
	}
}

func TestDecisionCountsOnceForAPendingCall(t *testing.T) {
	w := waits(t, pending(v1beta1.RequiresApproval, "1", "2")...)
	for name, id := range map[string]string{"another call": "9", "the same call again": "1"} {
		w.approve("1", v1beta1.DecisionApprove)
		w.approve(id, v1beta1.DecisionDeny)
		if len(w.last.NotPending) != 1 || len(w.last.Applied) != 0 {
			t.Errorf("%s: applied %v, refused %v", name, w.last.Applied, w.last.NotPending)
		}
	}
	waits(t, pending(v1beta1.RequiresClient, "1")...).approve("1", v1beta1.DecisionApprove).
		want("RequiresAction v2 c-1-1/2 - []")
}

func TestResultsWaitUntilTheOtherCallsAreDecided(t *testing.T) {
	w := waits(t, append(pending(v1beta1.RequiresApproval, "1"), pending(v1beta1.RequiresClient, "2")...)...)
	w.bring("2").want("RequiresAction v2 c-1-1/2 - []")
	if len(w.last.Rejected)+len(w.last.Taken) != 0 {
		t.Errorf("rejected %v, took %v", w.last.Rejected, w.last.Taken)
	}
	w.approve("1", v1beta1.DecisionApprove).want("RequiresAction v2 c-1-1/2 - []")
	w.bring("2").want("Running v3 results/3 1:ExecuteTools []")
	w.answer(chattest.Results("1")).want("Running v4 c-3-1/4 1:GenerateAssistant []")
}

func TestGivenUpCallsRefuseTheirWaitingResults(t *testing.T) {
	for name, cancel := range map[string]func(*Facts){
		"the deadline":           func(f *Facts) { f.Now = now.Add(v1beta1.DefaultActionDeadline) },
		"a message that cuts in": func(f *Facts) { f.Open = messages(true, "b") },
	} {
		t.Run(name, func(t *testing.T) {
			w := waits(t, append(pending(v1beta1.RequiresApproval, "1"), pending(v1beta1.RequiresClient, "2")...)...)
			w.pass(func(f *Facts) {
				f.Results = []*v1beta1.ChatMessage{bringing("early", v1beta1.ToolResult{ID: "2"})}
				cancel(f)
			})
			if got := w.last.Rejected; len(got) != 1 || got[0].Message != "early" {
				t.Errorf("rejected %+v", got)
			}
		})
	}
}

func TestWaitingResultsAnswerNoEarlierReply(t *testing.T) {
	w := waits(t, append(pending(v1beta1.RequiresApproval, "1"), pending(v1beta1.RequiresClient, "2")...)...)
	w.pass(func(f *Facts) {
		f.Results = []*v1beta1.ChatMessage{brought("2")}
		// The reply that made the calls is deleted, and the calls of the one before it are asked for again.
		f.Truncated = &Truncated{Head: "before", Length: 2, Unanswered: true, Turn: TurnRecord{
			&v1beta1.TurnStatus{Message: "a", HistoryVersion: 1},
			v1beta1.TurnInternalStatus{LastRole: v1beta1.RoleAssistant, PendingCalls: 1, CallsRequiringAction: 1,
				CallingMessage: "before"},
		}}
		f.Calls = pending(v1beta1.RequiresClient, "0")
	}).want("RequiresAction v3 before/2 - []")
	if got := w.last.Rejected; len(got) != 1 ||
		got[0].Note != "No tool call 2 waits for a client: delete this message and create a right one" {
		t.Errorf("rejected %+v, took %v", got, w.last.Taken)
	}
}

func TestInterruptingMessageEndsRequiresAction(t *testing.T) {
	w := waits(t, pending(v1beta1.RequiresClient, "1")...).say("b").want("RequiresAction v2 c-1-1/2 - [b]")
	w.pass(func(f *Facts) { f.Queued[0].Interrupts = true }).want("Running v3 b/3 1:GenerateAssistant []")
	w.wantPrevious("a", v1beta1.TurnInterrupted)
}

func TestWrongResultsAreRejectedWhileValidOnesWait(t *testing.T) {
	w := waits(t, append(pending(v1beta1.RequiresApproval, "1"), pending(v1beta1.RequiresClient, "2")...)...)
	w.pass(func(f *Facts) {
		f.Results = []*v1beta1.ChatMessage{bringing("right", v1beta1.ToolResult{ID: "2"}),
			bringing("wrong", v1beta1.ToolResult{ID: "3"})}
	})
	if len(w.last.Rejected) != 1 || w.last.Rejected[0].Message != "wrong" {
		t.Errorf("rejected %+v", w.last.Rejected)
	}
}

func TestCallsBeforeADeletedMessageAreRunAgain(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1"), chattest.CallsRequiring(v1beta1.RequiresClient, "2"))
	w.pass(func(f *Facts) {
		f.Result, f.Calls = chattest.Answer(w.chat, chattest.Results("1")), pending(v1beta1.RequiresClient, "2")
	})
	w.want("RequiresAction v3 c-2-1/3 - []")
	calling := chattest.Generated("c-1-1", v1beta1.RoleAssistant, chattest.Calls("1"),
		chattest.CallsRequiring(v1beta1.RequiresClient, "2"))
	w.pass(func(f *Facts) { f.Truncated = rest([]*v1beta1.ChatMessage{question("a"), calling}) }).
		want("Running v4 c-1-1/2 1:ExecuteTools []")
}

func TestQuestionOutlivesTheResultsOfAClient(t *testing.T) {
	calling := chattest.Generated("c-1-1", v1beta1.RoleAssistant, chattest.Calls("1"),
		chattest.CallsRequiring(v1beta1.RequiresClient, "2"))
	asking := chattest.Generated("c-2-1", v1beta1.RoleTool, chattest.Asks("1"))
	in := rest([]*v1beta1.ChatMessage{question("a"), calling, asking,
		bringing("results", v1beta1.ToolResult{ID: "2"})}).Turn.Internal // A message behind them was deleted.
	if in.AskingMessage != "c-2-1" || in.PendingCalls != 1 || in.CallsRequiringAction != 1 {
		t.Errorf("%q asks people, and %d of %d calls wait for them", in.AskingMessage, in.CallsRequiringAction,
			in.PendingCalls)
	}
}

func TestCallsThatNobodyAnswersAreCancelled(t *testing.T) {
	w := waits(t, pending(v1beta1.RequiresClient, "1")...)
	w.pass(func(f *Facts) { f.Now = now.Add(v1beta1.DefaultActionDeadline - time.Second) }).
		want("RequiresAction v2 c-1-1/2 - []")
	w.pass(func(f *Facts) { f.Now = now.Add(v1beta1.DefaultActionDeadline) }).
		want("Running v3 c-1-1/2 1:GenerateAssistant []")
	w.answer(chattest.Says("hi")).want("Waiting v4 c-3-1/3 - []")
}

func TestInterruptEndsTurnWhoseCallsWait(t *testing.T) {
	for name, kind := range map[string]v1beta1.RequiredAction{
		"for a client": v1beta1.RequiresClient, "for approval": v1beta1.RequiresApproval,
	} {
		t.Run(name, func(t *testing.T) {
			w := waits(t, pending(kind, "1")...).ask(v1beta1.RequestInterrupt).requested(v1beta1.RequestDone)
			w.want("Waiting v4 c-1-1/2 - []").wantReason(v1beta1.ReasonInterrupted).wantGivenUp(v1beta1.CallsCanceled, "")
			w.say("b").want("Running v5 b/3 1:GenerateAssistant []")
		})
	}
	waits(t, pending(v1beta1.RequiresClient, "1")...).say("b").ask(v1beta1.RequestInterrupt).
		want("Running v4 b/3 1:GenerateAssistant []")
	waits(t, pending(v1beta1.RequiresApproval, "1")...).say("b").cutIn("c").
		want("Running v4 c/3 1:GenerateAssistant [b]").wantPrevious("a", v1beta1.TurnInterrupted)
}
