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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// annotated waits until the chat has an annotation, and returns its value.
func (p *person) annotated(key string) string {
	p.t.Helper()
	eventually(p.t, "the chat has annotation "+key, func() bool {
		p.get(p.chat)
		return p.chat.Annotations[key] != ""
	})
	return p.chat.Annotations[key]
}

func (p *person) handle(r v1beta1.HandledRequest) {
	p.t.Helper()
	r.Time = metav1.Now()
	p.chat.Status.Requests = []v1beta1.HandledRequest{r}
	p.updateStatus(p.chat)
}

func TestRequestIsFollowedUntilItIsHandled(t *testing.T) {
	t.Parallel()
	for verb, c := range map[string]struct {
		kind       v1beta1.RequestKind
		annotation string
		done       string
	}{
		"interrupt": {v1beta1.RequestInterrupt, v1beta1.AnnotationInterrupt, "chat.parley.dev/triage interrupted: Done\n"},
		"compact": {v1beta1.RequestCompact, v1beta1.AnnotationCompact,
			"chat.parley.dev/triage is being compacted: Done\n"},
		"title": {v1beta1.RequestTitle, v1beta1.AnnotationTitle,
			"chat.parley.dev/triage gets another title with its next reply: Done\n"},
		"refresh-context": {v1beta1.RequestRefreshContext, v1beta1.AnnotationRefreshContext,
			"chat.parley.dev/triage reads the context of its workspace again with its next calls there: Done\n"},
		"clear": {v1beta1.RequestClear, v1beta1.AnnotationClear, "chat.parley.dev/triage cleared: Done\n"},
	} {
		t.Run(verb, func(t *testing.T) {
			p := newPerson(t)
			granted := p.run(verb, "triage")
			first := p.annotated(c.annotation)
			p.handle(v1beta1.HandledRequest{Kind: c.kind, Token: "of somebody else", Outcome: v1beta1.RequestRefused})
			p.handle(v1beta1.HandledRequest{Kind: c.kind, Token: first, Outcome: v1beta1.RequestDone})
			granted.shows(c.done)
			p.chat.Annotations = nil
			p.update(p.chat)
			refused := p.run(verb, "triage")
			second := p.annotated(c.annotation)
			if second == first {
				t.Error("the token was used before")
			}
			p.chat.Status.Phase = v1beta1.ChatWaiting
			p.handle(v1beta1.HandledRequest{Kind: c.kind, Token: second, Outcome: v1beta1.RequestRefused,
				Message: "this is not possible in the chat's phase"})
			refused.failsWith("Refused: this is not possible in the chat's phase; chat triage is idle")
		})
	}
}

func TestTitleSetsWhatIsTyped(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("title", "triage", "My", "nodes", "--wait=false").shows("chat.parley.dev/triage changed\n")
	c := p.run("rename", "triage", "My network")
	eventually(t, "the title is set", func() bool { p.get(p.chat); return p.chat.Spec.Title == "My network" })
	p.chat.Status.ObservedGeneration = p.chat.Generation
	p.updateStatus(p.chat)
	c.shows("chat.parley.dev/triage titled\n")
}

func TestARequestNeedNotBeFollowed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.run("interrupt", "triage", "--wait=false")
	c.shows("chat.parley.dev/triage annotated\n")
	p.annotated(v1beta1.AnnotationInterrupt)
	p.run("clear", "triage", "--timeout", "50ms").exits(exitTimedOut,
		"timed out after 50ms waiting for chat triage to act on parley.dev/clear: ")
	c = p.run("interrupt", "triage")
	for mine := p.chat.Annotations[v1beta1.AnnotationInterrupt]; p.annotated(v1beta1.AnnotationInterrupt) == mine; {
	}
	p.chat.Annotations[v1beta1.AnnotationInterrupt] = "of somebody else"
	p.update(p.chat)
	c.fails("another person has annotated")
}

// digest gives the calls of a chat that need approval their digests, as the operator does.
func digest(chat *v1beta1.Chat) {
	calls := chat.Status.RequiresAction.ToolCalls
	for i := range calls {
		if calls[i].Kind == v1beta1.RequiresApproval {
			calls[i].Digest = calls[i].CallDigest()
		}
	}
}

// want lets the chat wait for people: one call to approve, one that was, and one of a client.
func (p *person) want(changes ...func(calls []v1beta1.PendingToolCall)) {
	p.t.Helper()
	p.chat.Status.Phase = v1beta1.ChatRequiresAction
	p.chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{Deadline: metav1.NewTime(time.Now().
		Add(5*time.Minute + 500*time.Millisecond)), ToolCalls: []v1beta1.PendingToolCall{
		{ID: "call_1", Name: "open_ticket", Kind: v1beta1.RequiresClient, Input: "{\"title\":\n\"CNI down\"}"},
		{ID: "call_2", Name: "current_time", Kind: v1beta1.RequiresApproval, Input: `{}`},
		{ID: "call_3", Name: "current_time", Kind: v1beta1.RequiresApproval, Input: `{}`,
			Decision: &v1beta1.ToolDecision{ID: "call_3", Decision: v1beta1.DecisionApprove, Approval: "triage-x",
				By: "anna", At: new(metav1.NewTime(time.Date(2026, 11, 25, 9, 30, 0, 0, time.Local)))}},
	}}
	for _, change := range changes {
		change(p.chat.Status.RequiresAction.ToolCalls)
	}
	digest(p.chat)
	p.updateStatus(p.chat)
}

func TestCallsListsWhatWaits(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("calls", "triage").shows("", "No tool call of chat triage waits: it is new.")
	p.want()
	table := p.exact("calls", "triage")
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
	check.Equal(t, "shown", want, strings.ReplaceAll(table, "4m59s", "5m"))
	var required v1beta1.RequiresActionStatus
	check.OK(t, json.Unmarshal([]byte(p.exact("calls", "triage", "-o", "json")), &required))
	check.Equal(t, "calls", 3, len(required.ToolCalls))
}

// decisions is how many ToolApprovals there are.
func (p *person) decisions() int {
	p.t.Helper()
	all := &v1beta1.ToolApprovalList{}
	check.OK(p.t, p.c.List(p.t.Context(), all, client.InNamespace(p.namespace)))
	return len(all.Items)
}

// approval waits for the ToolApproval that the plug-in creates.
func (p *person) approval() *v1beta1.ToolApproval {
	p.t.Helper()
	return find(p, "a ToolApproval was created", &v1beta1.ToolApprovalList{},
		func(a *v1beta1.ToolApproval) bool { return len(a.Status.Conditions) == 0 })
}

func TestADecisionIsFollowedUntilItCounts(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	digest := p.chat.Status.RequiresAction.ToolCalls[1].Digest
	approve := p.run("approve", "triage", "call_2", "--comment", "go on", "--digest",
		render.ShortDigest(digest))
	a := p.approval()
	check.Equal(t, "created", v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: "triage"},
		ToolCallID: "call_2", Decision: v1beta1.DecisionApprove, Digest: digest, Comment: "go on"}, a.Spec)
	a.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
	p.updateStatus(a)
	approve.shows("toolapproval.parley.dev/" + a.Name + " approved call_2 (current_time): Applied\n")
	deny := p.run("deny", "triage", "-o", "json") // It is the only call that waits.
	a = p.approval()
	check.Equal(t, "decision", v1beta1.DecisionDeny, a.Spec.Decision)
	a.Status.Conditions = ready(metav1.ConditionFalse, v1beta1.ReasonNotPending, "call_2 was approved already")
	p.updateStatus(a)
	deny.failsWith("NotPending: call_2 was approved already")
	p.run("deny", "chat.parley.dev/triage", "_2", "--wait=false").
		shows("toolapproval.parley.dev/" + p.approval().Name + " created\n")
}

func TestResultsAreFollowedUntilTheyAreAccepted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	sent := func() *v1beta1.ChatMessage {
		return find(p, "results were sent", &v1beta1.ChatMessageList{},
			func(m *v1beta1.ChatMessage) bool { return len(m.Status.Conditions) == 0 })
	}
	accepted := p.run("answer", "triage", `call_1={"number": 4711}`)
	m := sent()
	if m.Spec.Role != v1beta1.RoleTool || len(m.Spec.Parts) != 1 || m.Spec.Parts[0].ToolResult.ID != "call_1" ||
		m.Spec.Parts[0].ToolResult.Output != `{"number": 4711}` {
		t.Errorf("created %+v", m.Spec)
	}
	m.Status.Conditions = ready(metav1.ConditionUnknown, v1beta1.ReasonWaitingForApproval, "call_2 waits for approval")
	p.updateStatus(m)
	m.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonResultsAccepted, "")
	p.updateStatus(m)
	accepted.shows("chatmessage.parley.dev/" + m.Name + " answers call_1 (open_ticket): ResultsAccepted\n")
	waits := p.run("answer", "triage", `call_1=1`, "--timeout", "2s")
	m = sent()
	m.Status.Conditions = ready(metav1.ConditionUnknown, v1beta1.ReasonWaitingForApproval, "call_2 waits for approval")
	p.updateStatus(m)
	waits.exits(exitTimedOut, "to be accepted: WaitingForApproval: call_2 waits for approval")
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
	want := `      |   "command": "echo ls` + strings.Repeat(`\u0020`, 40) + `; echo hidden\n
      |       \n
      |       rm \u202e x"
`
	check.Contains(t, p.exact("calls", "triage"), want)
	for want, digest := range map[string]string{
		"--digest is required without a terminal":          "",
		"has digest " + call.Digest + ", not 0123456789ab": "0123456789ab",
		"has digest " + call.Digest + ", not sha256:":      "sha256:",
	} {
		p.run("approve", "triage", "call_2", "--digest", digest).fails(want)
	}
	another := p.chat.Status.RequiresAction.ToolCalls[1].Digest
	p.chat.Status.RequiresAction.ToolCalls[1].Input = `{"command":"ls"}`
	p.updateStatus(p.chat)
	p.run("approve", "triage", "call_2", "--digest", render.ShortDigest(another)).fails("does not fit the call")
}

func TestImpossibleDecisionIsSaidBeforeCreation(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("approve", "triage", "call_1").fails("no call of chat triage waits for approval: it is new", "calls triage")
	p.want()
	for want, args := range map[string][]string{
		"chat triage has no call call_1 that waits for approval: there is call_2 (current_time), call_3 (current_time)": {
			"approve", "triage", "call_1"},
		"call call_3 was approved by ToolApproval triage-x already":                       {"deny", "triage", "call_3"},
		`"call" can be call_2 (current_time), call_3 (current_time): type more of the id`: {"deny", "triage", "call"},
		"give CALL=JSON for call_1 (open_ticket)":                                         {"answer", "triage", "call_2=1"},
		"has no chat other: there is triage":                                              {"calls", "other"},
	} {
		p.run(args...).fails(want)
	}
	var approvals v1beta1.ToolApprovalList
	if err := p.c.List(t.Context(), &approvals, client.InNamespace(p.namespace)); err != nil || len(approvals.Items) > 0 {
		t.Errorf("created %+v, %v", approvals.Items, err)
	}
}

func TestSendCanCutIn(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("send", "triage", "--interrupt", "--no-follow", "never mind").succeeds()
	if m := p.sent(); m.Spec.WhenBusy != v1beta1.WhenBusyInterrupt || m.Spec.Content != "never mind" {
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
			p.settle(m, ready(metav1.ConditionFalse, v1beta1.ReasonInterrupted, "The turn was interrupted"))
			p.reply(chattest.Says("Networks are"), chattest.Interrupted())
			p.chat.Status.Turn.Result = v1beta1.TurnInterrupted
			p.chat.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonInterrupted, "")
			p.updateStatus(p.chat)
			c.failsWith("Interrupted: The turn was interrupted")
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
			p.run("send", "triage", "first question", "--no-follow").succeeds()
			first := p.sent()
			p.begin(first)
			tail := p.start(kubeconfig, "", "--gateway", p.gateway, "tail", "triage", "--history")
			p.answer(first, "first answer")
			tail.waitOutput("▎> first question\nfirst answer\n")
			first.Spec.Content = "what I meant"
			p.update(first)
			h := &p.chat.Status.History
			h.Version, h.Length, h.Head = h.Version+1, 1, first.Name
			p.chat.Status.Turn = &v1beta1.TurnStatus{Message: first.Name, HistoryVersion: h.Version}
			p.updateStatus(p.chat)
			tail.waitOutput("▎> first question\nfirst answer\n▎> what I meant\n")
			p.answer(first, "now I see")
			p.want()
			tail.waitNote("deny triage call_2")
			check.Contains(t, tail.errOut.String(),
				"▎[the conversation was changed from message 1 on; it continues like this:]\n",
				"▎    kubectl chat --kubeconfig "+p.files[kubeconfig]+" approve triage call_2 --digest "+
					render.ShortDigest(p.chat.Status.RequiresAction.ToolCalls[1].Digest)+"\n")
		})
	}
}

func TestCallsOfAllChatsAreListed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("calls").shows("", "No tool call waits in namespace "+p.namespace)
	p.create(chattest.In(p.namespace, chattest.Chat("idle")))
	p.want()
	want := `CHAT     ID       TOOL           KIND       DECISION                                  DEADLINE
triage   call_1   open_ticket    Client     <none>                                    5m
triage   call_2   current_time   Approval   <none>                                    5m
triage   call_3   current_time   Approval   approved by anna at 2026-11-25 09:30:00   5m
`
	check.Equal(t, "shown", want, strings.ReplaceAll(p.exact("calls"), "4m59s", "5m"))
	var waiting v1beta1.ChatList
	check.OK(t, json.Unmarshal([]byte(p.exact("calls", "-o", "json")), &waiting))
	check.Equal(t, "chats that wait", 1, len(waiting.Items))
	p.run("calls", "-A", "triage").fails("give no CHAT")
}
