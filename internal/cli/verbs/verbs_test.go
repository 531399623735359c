// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/test/kit/chattest"
)

// annotated waits until the chat has an annotation, and returns its value.
func (p *person) annotated(key string) string {
	p.t.Helper()
	for range poll(p.t, "the chat has annotation "+key) {
		if err := p.c.Get(p.t.Context(), client.ObjectKeyFromObject(p.chat), p.chat); err != nil {
			p.t.Fatal(err)
		}
		if token := p.chat.Annotations[key]; token != "" {
			return token
		}
	}
	p.t.FailNow()
	return ""
}

func (p *person) handle(r v1alpha1.HandledRequest) {
	p.t.Helper()
	r.Time = metav1.Now()
	p.chat.Status.Requests = []v1alpha1.HandledRequest{r}
	p.updateStatus(p.chat)
}

func TestRequestIsFollowedUntilItIsHandled(t *testing.T) {
	t.Parallel()
	for verb, c := range map[string]struct {
		kind       v1alpha1.RequestKind
		annotation string
		done       string
	}{
		"interrupt": {v1alpha1.RequestInterrupt, v1alpha1.AnnotationInterrupt, "chat.parley.dev/triage interrupted: Done\n"},
		"compact": {v1alpha1.RequestCompact, v1alpha1.AnnotationCompact,
			"chat.parley.dev/triage is being compacted: Done\n"},
		"title": {v1alpha1.RequestTitle, v1alpha1.AnnotationTitle,
			"chat.parley.dev/triage gets another title with its next reply: Done\n"},
		"refresh-context": {v1alpha1.RequestRefreshContext, v1alpha1.AnnotationRefreshContext,
			"chat.parley.dev/triage reads the context of its workspace again with its next calls there: Done\n"},
		"clear": {v1alpha1.RequestClear, v1alpha1.AnnotationClear, "chat.parley.dev/triage cleared: Done\n"},
	} {
		t.Run(verb, func(t *testing.T) {
			p := newPerson(t)
			granted := p.start("token", "", verb, "triage")
			first := p.annotated(c.annotation)
			p.handle(v1alpha1.HandledRequest{Kind: c.kind, Token: "of somebody else", Outcome: v1alpha1.RequestRefused})
			p.handle(v1alpha1.HandledRequest{Kind: c.kind, Token: first, Outcome: v1alpha1.RequestDone})
			if err := granted.wait(); err != nil || granted.out.String() != c.done {
				t.Errorf("shown %q, %v", granted.out.String(), err)
			}
			p.chat.Annotations = nil
			if err := p.c.Update(t.Context(), p.chat); err != nil {
				t.Fatal(err)
			}
			refused := p.start("token", "", verb, "triage")
			second := p.annotated(c.annotation)
			if second == first {
				t.Error("the token was used before")
			}
			p.chat.Status.Phase = v1alpha1.ChatWaiting
			p.handle(v1alpha1.HandledRequest{Kind: c.kind, Token: second, Outcome: v1alpha1.RequestRefused,
				Message: "this is not possible in the chat's phase"})
			if err := refused.wait(); err == nil ||
				err.Error() != "Refused: this is not possible in the chat's phase; chat triage is Waiting" {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestARequestNeedNotBeFollowed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.start("token", "", "interrupt", "triage", "--wait=false")
	if err := c.wait(); err != nil || c.out.String() != "chat.parley.dev/triage annotated\n" ||
		p.annotated(v1alpha1.AnnotationInterrupt) == "" {
		t.Errorf("shown %q, %v", c.out.String(), err)
	}
	c = p.start("token", "", "clear", "triage", "--timeout", "50ms")
	if err := c.wait(); err == nil ||
		!strings.HasPrefix(err.Error(), "timed out after 50ms waiting for chat triage to act on parley.dev/clear: ") {
		t.Errorf("error %v", err)
	}
	c = p.start("token", "", "interrupt", "triage")
	for mine := p.chat.Annotations[v1alpha1.AnnotationInterrupt]; p.annotated(v1alpha1.AnnotationInterrupt) == mine; {
	}
	p.chat.Annotations[v1alpha1.AnnotationInterrupt] = "of somebody else"
	if err := p.c.Update(t.Context(), p.chat); err != nil {
		t.Fatal(err)
	}
	if err := c.wait(); err == nil || !strings.Contains(err.Error(), "another person has annotated") {
		t.Errorf("error %v", err)
	}
}

// digest gives the calls of a chat that need approval their digests, as the operator does.
func digest(chat *v1alpha1.Chat) {
	calls := chat.Status.RequiresAction.ToolCalls
	for i := range calls {
		if calls[i].Kind == v1alpha1.RequiresApproval {
			calls[i].Digest = calls[i].CallDigest()
		}
	}
}

// want lets the chat wait for people: one call to approve, one that was, and one of a client.
func (p *person) want() {
	p.t.Helper()
	p.chat.Status.Phase = v1alpha1.ChatRequiresAction
	p.chat.Status.RequiresAction = &v1alpha1.RequiresActionStatus{Deadline: metav1.NewTime(time.Now().
		Add(5*time.Minute + 500*time.Millisecond)), ToolCalls: []v1alpha1.PendingToolCall{
		{ID: "call_1", Name: "open_ticket", Kind: v1alpha1.RequiresClient, Input: "{\"title\":\n\"CNI down\"}"},
		{ID: "call_2", Name: "current_time", Kind: v1alpha1.RequiresApproval, Input: `{}`},
		{ID: "call_3", Name: "current_time", Kind: v1alpha1.RequiresApproval, Input: `{}`,
			Decision: &v1alpha1.ToolDecision{ID: "call_3", Decision: v1alpha1.DecisionApprove, Approval: "triage-x",
				By: "anna", At: new(metav1.NewTime(time.Date(2026, 11, 25, 9, 30, 0, 0, time.Local)))}},
	}}
	digest(p.chat)
	p.updateStatus(p.chat)
}

func TestCallsListsWhatWaits(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	none := p.start("token", "", "calls", "triage")
	if err := none.wait(); err != nil || none.out.String() != "" ||
		!strings.HasPrefix(none.errOut.String(), "No tool call of chat triage waits") {
		t.Errorf("shown %q and %q, %v", none.out.String(), none.errOut.String(), err)
	}
	p.want()
	table := p.start("token", "", "calls", "triage")
	if err := table.wait(); err != nil {
		t.Fatal(err)
	}
	digest := p.chat.Status.RequiresAction.ToolCalls[1].Digest
	want := `ID       TOOL           KIND       DECISION                                  DEADLINE
call_1   open_ticket    Client     <none>                                    5m
call_2   current_time   Approval   <none>                                    5m
call_3   current_time   Approval   approved by anna at 2026-11-25 09:30:00   5m

call_1 (open_ticket):
      | {
      |   "title": "CNI down"
      | }

call_2 (current_time):
      | {}
      digest ` + digest + `

call_3 (current_time):
      | {}
      digest ` + digest + `
`
	if got := strings.ReplaceAll(table.out.String(), "4m59s", "5m"); got != want {
		t.Errorf("shown\n%s", got)
	}
	asJSON := p.start("token", "", "calls", "triage", "-o", "json")
	var required v1alpha1.RequiresActionStatus
	if err := asJSON.wait(); err != nil || json.Unmarshal([]byte(asJSON.out.String()), &required) != nil ||
		len(required.ToolCalls) != 3 {
		t.Errorf("shown %s, %v", asJSON.out.String(), err)
	}
}

// approval waits for the ToolApproval that the plug-in creates.
func (p *person) approval() *v1alpha1.ToolApproval {
	p.t.Helper()
	for range poll(p.t, "a ToolApproval was created") {
		var list v1alpha1.ToolApprovalList
		if err := p.c.List(p.t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
			p.t.Fatal(err)
		}
		for i := range list.Items {
			if len(list.Items[i].Status.Conditions) == 0 {
				return &list.Items[i]
			}
		}
	}
	p.t.FailNow()
	return nil
}

func TestADecisionIsFollowedUntilItCounts(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	digest := p.chat.Status.RequiresAction.ToolCalls[1].Digest
	approve := p.start("token", "", "approve", "triage", "call_2", "--comment", "go on", "--digest",
		render.ShortDigest(digest))
	a := p.approval()
	if want := (v1alpha1.ToolApprovalSpec{ChatRef: v1alpha1.ChatReference{Name: "triage"}, ToolCallID: "call_2",
		Decision: v1alpha1.DecisionApprove, Digest: digest, Comment: "go on"}); a.Spec != want {
		t.Errorf("created %+v", a.Spec)
	}
	a.Status.Conditions = ready(metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	p.updateStatus(a)
	if err := approve.wait(); err != nil || approve.out.String() != "toolapproval.parley.dev/"+a.Name+
		" approved call_2 (current_time): Applied\n" {
		t.Errorf("shown %q, %v", approve.out.String(), err)
	}
	deny := p.start("token", "", "deny", "triage", "-o", "json") // It is the only call that waits.
	a = p.approval()
	if a.Spec.Decision != v1alpha1.DecisionDeny {
		t.Errorf("created %+v", a.Spec)
	}
	a.Status.Conditions = ready(metav1.ConditionFalse, v1alpha1.ReasonNotPending, "call_2 was approved already")
	p.updateStatus(a)
	if err := deny.wait(); err == nil || err.Error() != "NotPending: call_2 was approved already" {
		t.Errorf("error %v", err)
	}
	quick := p.start("token", "", "deny", "chat.parley.dev/triage", "_2", "--wait=false")
	if err := quick.wait(); err != nil || quick.out.String() != "toolapproval.parley.dev/"+p.approval().Name+" created\n" {
		t.Errorf("shown %q, %v", quick.out.String(), err)
	}
}

func TestResultsAreFollowedUntilTheyAreAccepted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	sent := func() *v1alpha1.ChatMessage {
		for range poll(t, "results were sent") {
			var list v1alpha1.ChatMessageList
			if err := p.c.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if len(list.Items[i].Status.Conditions) == 0 {
					return &list.Items[i]
				}
			}
		}
		t.FailNow()
		return nil
	}
	accepted := p.start("token", "", "answer", "triage", `call_1={"number": 4711}`)
	m := sent()
	if m.Spec.Role != v1alpha1.RoleTool || len(m.Spec.Parts) != 1 || m.Spec.Parts[0].ToolResult.ID != "call_1" ||
		m.Spec.Parts[0].ToolResult.Output != `{"number": 4711}` {
		t.Errorf("created %+v", m.Spec)
	}
	m.Status.Conditions = ready(metav1.ConditionUnknown, v1alpha1.ReasonWaitingForApproval, "call_2 waits for approval")
	p.updateStatus(m)
	m.Status.Conditions = ready(metav1.ConditionTrue, v1alpha1.ReasonResultsAccepted, "")
	p.updateStatus(m)
	if err := accepted.wait(); err != nil || accepted.out.String() != "chatmessage.parley.dev/"+m.Name+
		" answers call_1 (open_ticket): ResultsAccepted\n" {
		t.Errorf("shown %q, %v", accepted.out.String(), err)
	}
	waits := p.start("token", "", "answer", "triage", `call_1=1`, "--timeout", "2s")
	m = sent()
	m.Status.Conditions = ready(metav1.ConditionUnknown, v1alpha1.ReasonWaitingForApproval, "call_2 waits for approval")
	p.updateStatus(m)
	if err := waits.wait(); err == nil ||
		!strings.HasSuffix(err.Error(), "to be accepted: WaitingForApproval: call_2 waits for approval") {
		t.Errorf("error %v", err)
	}
}

func TestOnlyWhatWasSeenIsApproved(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	hidden := `{"command":"echo ls` + strings.Repeat(`\u0020`, 40) + `; echo hidden\n\nrm \u202e x"}`
	call := &p.chat.Status.RequiresAction.ToolCalls[1]
	call.Name, call.Input = "execute", hidden
	digest(p.chat)
	p.updateStatus(p.chat)
	shown := p.start("token", "", "calls", "triage")
	want := `      |   "command": "echo ls` + strings.Repeat(`\u0020`, 40) + `; echo hidden\n
      |       \n
      |       rm \u202e x"
`
	if err := shown.wait(); err != nil || !strings.Contains(shown.out.String(), want) {
		t.Errorf("shown %s, %v", shown.out.String(), err)
	}
	for want, digest := range map[string]string{
		"--digest is required without a terminal":          "",
		"has digest " + call.Digest + ", not 0123456789ab": "0123456789ab",
		"has digest " + call.Digest + ", not sha256:":      "sha256:",
	} {
		if err := p.start("token", "", "approve", "triage", "call_2", "--digest", digest).wait(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
	}
	another := p.chat.Status.RequiresAction.ToolCalls[1].Digest
	p.chat.Status.RequiresAction.ToolCalls[1].Input = `{"command":"ls"}`
	p.updateStatus(p.chat)
	unseen := p.start("token", "", "approve", "triage", "call_2", "--digest", render.ShortDigest(another))
	if err := unseen.wait(); err == nil ||
		!strings.Contains(err.Error(), "does not fit the call") {
		t.Errorf("error %v", err)
	}
}

func TestImpossibleDecisionIsSaidBeforeCreation(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	idle := p.start("token", "", "approve", "triage", "call_1")
	if err := idle.wait(); err == nil || !strings.Contains(err.Error(), "no call of chat triage waits for approval") ||
		!strings.Contains(err.Error(), "calls triage") {
		t.Errorf("error %v", err)
	}
	p.want()
	for want, args := range map[string][]string{
		"chat triage has no call call_1 that waits for approval: there is call_2 (current_time), call_3 (current_time)": {
			"approve", "triage", "call_1"},
		"call call_3 was approved by ToolApproval triage-x already":                       {"deny", "triage", "call_3"},
		`"call" can be call_2 (current_time), call_3 (current_time): type more of the id`: {"deny", "triage", "call"},
		"give CALL=JSON for call_1 (open_ticket)":                                         {"answer", "triage", "call_2=1"},
		"has no chat other: there is triage":                                              {"calls", "other"},
	} {
		if err := p.start("token", "", args...).wait(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v", args, err)
		}
	}
	var approvals v1alpha1.ToolApprovalList
	if err := p.c.List(t.Context(), &approvals, client.InNamespace(p.namespace)); err != nil || len(approvals.Items) > 0 {
		t.Errorf("created %+v, %v", approvals.Items, err)
	}
}

func TestSendCanCutIn(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	if err := p.start("token", "", "send", "triage", "--interrupt", "--no-follow", "never mind").wait(); err != nil {
		t.Fatal(err)
	}
	if m := p.sent(); m.Spec.WhenBusy != v1alpha1.WhenBusyInterrupt || m.Spec.Content != "never mind" {
		t.Errorf("sent %+v", m.Spec)
	}
}

func TestSendShowsWhatAnInterruptedTurnLeaves(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			c := p.start(kubeconfig, "", "--gateway", p.gateway, "send", "triage", "an essay")
			m := p.sent()
			p.begin(m)
			// The message's own status overtakes what the stream has to tell.
			p.settle(m, ready(metav1.ConditionFalse, v1alpha1.ReasonInterrupted, "The turn was interrupted"))
			p.reply(chattest.Says("Networks are"), chattest.Interrupted())
			p.chat.Status.Turn.Result = v1alpha1.TurnInterrupted
			p.chat.Status.Conditions = ready(metav1.ConditionTrue, v1alpha1.ReasonInterrupted, "")
			p.updateStatus(p.chat)
			if err := c.wait(); err == nil || err.Error() != "Interrupted: The turn was interrupted" {
				t.Errorf("error %v", err)
			}
			if c.out.String() != "Networks are\n" || !strings.HasSuffix(c.errOut.String(), "▎[interrupted]\n") {
				t.Errorf("shown %q, noted %q", c.out.String(), c.errOut.String())
			}
		})
	}
}

func TestTailTellsWhatWaitsAndWhatWasEdited(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			if err := p.start("token", "", "send", "triage", "first question", "--no-follow").wait(); err != nil {
				t.Fatal(err)
			}
			first := p.sent()
			p.begin(first)
			tail := p.start(kubeconfig, "", "--gateway", p.gateway, "tail", "triage", "--history")
			p.answer(first, "first answer")
			tail.waitOutput("▎> first question\nfirst answer\n")
			first.Spec.Content = "what I meant"
			if err := p.c.Update(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			h := &p.chat.Status.History
			h.Version, h.Length, h.Head = h.Version+1, 1, first.Name
			p.chat.Status.Turn = &v1alpha1.TurnStatus{Message: first.Name, HistoryVersion: h.Version}
			p.updateStatus(p.chat)
			tail.waitOutput("▎> first question\nfirst answer\n▎> what I meant\n")
			p.answer(first, "now I see")
			p.want()
			for range poll(t, "the action is told") {
				if strings.Contains(tail.errOut.String(), "deny triage call_2") {
					break
				}
			}
			notes := tail.errOut.String()
			command := "▎    kubectl chat --kubeconfig " + p.files[kubeconfig] + " approve triage call_2 --digest " +
				render.ShortDigest(p.chat.Status.RequiresAction.ToolCalls[1].Digest) + "\n"
			if !strings.Contains(notes, "▎[the conversation was changed from message 1 on; it continues like this:]\n") ||
				!strings.Contains(notes, command) {
				t.Errorf("noted %q", notes)
			}
		})
	}
}
