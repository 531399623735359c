// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
)

// sent waits for the message that the plug-in creates.
func (p *person) sent() *v1alpha1.ChatMessage {
	p.t.Helper()
	for range poll(p.t, "a message was sent") {
		var list v1alpha1.ChatMessageList
		if err := p.c.List(p.t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
			p.t.Fatal(err)
		}
		for i := range list.Items {
			if m := &list.Items[i]; m.Spec.Role == v1alpha1.RoleUser && m.Status.State == "" {
				return m
			}
		}
	}
	p.t.FailNow()
	return nil
}

func ready(status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: string(reason), Message: message,
		LastTransitionTime: metav1.Now()}}
}

// commit puts a message at the chat's head, as the reconciler would, and writes nothing yet.
func (p *person) commit(name string) {
	h := &p.chat.Status.History
	h.Version, h.Length, h.Head = h.Version+1, h.Length+1, name
}

// begin begins the turn of a message.
func (p *person) begin(m *v1alpha1.ChatMessage) {
	h := p.chat.Status.History
	p.commit(m.Name)
	p.chat.Status.Turn = &v1alpha1.TurnStatus{Message: m.Name, Parent: h.Head, Index: h.Length,
		HistoryVersion: h.Version + 1}
	p.chat.Status.Conditions = ready(metav1.ConditionUnknown, v1alpha1.ReasonGenerating, "")
	p.updateStatus(p.chat)
	p.settle(m, ready(metav1.ConditionUnknown, v1alpha1.ReasonBeingAnswered, ""))
}

// settle writes what became of a message.
func (p *person) settle(m *v1alpha1.ChatMessage, conditions []metav1.Condition) {
	turn := p.chat.Status.Turn
	m.Status = v1alpha1.ChatMessageStatus{State: v1alpha1.MessageCommitted, ChatUID: string(p.chat.UID),
		Parent: turn.Parent,
		Index:  &turn.Index, HistoryVersion: turn.HistoryVersion, Conditions: conditions}
	p.updateStatus(m)
}

// reply puts what the model answers at the chat's head.
func (p *person) reply(replies ...chattest.Reply) {
	m := chattest.Answer(answering(p.chat), replies...)
	p.create(m)
	p.commit(m.Name)
}

// answering is a chat that a generation pod answers.
func answering(chat *v1alpha1.Chat) *v1alpha1.Chat {
	busy := chat.DeepCopy()
	busy.Status.Generation = &v1alpha1.GenerationStatus{Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "pod"}
	return busy
}

// answer ends the turn of a message with a reply.
func (p *person) answer(m *v1alpha1.ChatMessage, text string) {
	p.reply(chattest.Says(text))
	p.chat.Status.Conditions = ready(metav1.ConditionTrue, v1alpha1.ReasonAnswered, "")
	p.updateStatus(p.chat)
	p.settle(m, ready(metav1.ConditionTrue, v1alpha1.ReasonAnswered, ""))
}

func TestSendShowsTheReplyWhateverTheKubeconfigHolds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kubeconfig string
		args       []string
		note       string
	}{
		"a token":                             {kubeconfig: "token"},
		"a certificate":                       {kubeconfig: "certificate", note: "no token to show to the gateway"},
		"a certificate and a service account": {kubeconfig: "certificate", args: []string{"--service-account", "person"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			c := p.start(tt.kubeconfig, "", append(tt.args, "--gateway", p.gateway, "send", "triage", "how", "are", "you")...)
			m := p.sent()
			if m.Spec.Content != "how are you" || !strings.HasPrefix(m.Name, "triage-") {
				t.Errorf("sent %s %q", m.Name, m.Spec.Content)
			}
			p.begin(m)
			p.answer(m, "fine, thanks")
			if err := c.wait(); err != nil || c.out.String() != "fine, thanks\n" {
				t.Errorf("shown %q, %v", c.out.String(), err)
			}
			if got := c.errOut.String(); !strings.Contains(got, tt.note) || tt.note == "" && got != "" {
				t.Errorf("noted %q, want %q", got, tt.note)
			}
		})
	}
}

func TestSendFailsWithTheReasonOfTheMessage(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	failed := p.start("token", "from a pipe", "--gateway", p.gateway, "send", "triage", "-")
	m := p.sent()
	if m.Spec.Content != "from a pipe" {
		t.Errorf("sent %q", m.Spec.Content)
	}
	p.begin(m)
	p.chat.Status.Conditions = ready(metav1.ConditionFalse, v1alpha1.ConditionReason(v1alpha1.ErrorOverloaded),
		"anthropic has no capacity")
	p.updateStatus(p.chat)
	p.settle(m, ready(metav1.ConditionFalse, v1alpha1.ConditionReason(v1alpha1.ErrorOverloaded),
		"anthropic has no capacity"))
	if err := failed.wait(); err == nil || err.Error() != "Overloaded: anthropic has no capacity" {
		t.Errorf("a failed turn: %v", err)
	}
	rejected := p.start("token", "", "--gateway", p.gateway, "send", "triage", "one too many")
	m = p.sent()
	m.Status = v1alpha1.ChatMessageStatus{State: v1alpha1.MessageRejected,
		Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonQueueFull, "20 messages wait")}
	p.updateStatus(m)
	if err := rejected.wait(); err == nil || err.Error() != "QueueFull: 20 messages wait" {
		t.Errorf("a rejected message: %v", err)
	}
}

func TestSendCanLeaveTheReplyAlone(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.start("token", "", "send", "triage", "hello", "--no-follow")
	if err := c.wait(); err != nil || c.out.String() != "chatmessage.parley.dev/"+p.sent().Name+" created\n" {
		t.Errorf("shown %q, %v", c.out.String(), err)
	}
}

func TestTailEndsWhenTheChatIsDeleted(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			if err := p.start("token", "", "send", "triage", "first question", "--no-follow").wait(); err != nil {
				t.Fatal(err)
			}
			first := p.sent()
			p.begin(first)
			p.answer(first, "first answer")
			history := p.start(kubeconfig, "", "--gateway", p.gateway, "tail", "triage", "--history")
			history.waitOutput("▎> first question\nfirst answer\n")
			now := p.start(kubeconfig, "", "--gateway", p.gateway, "tail", "triage", "-o", "json")
			now.waitOutput(`"event":"status"`)
			p.create(&v1alpha1.ChatMessage{ObjectMeta: p.meta("second"), Spec: v1alpha1.ChatMessageSpec{
				ChatRef: v1alpha1.ChatReference{Name: "triage"}, Content: "second question"}})
			second := p.sent()
			p.begin(second)
			p.answer(second, "second answer")
			history.waitOutput("▎> second question\nsecond answer\n")
			now.waitOutput("second answer")
			if err := p.c.Delete(t.Context(), p.chat); err != nil {
				t.Fatal(err)
			}
			for _, c := range []*command{history, now} {
				if err := c.wait(); err != nil {
					t.Error(err)
				}
			}
			if strings.Contains(now.out.String(), "first") {
				t.Errorf("from now on it showed %s", now.out.String())
			}
			for l := range strings.Lines(now.out.String()) {
				if !json.Valid([]byte(l)) {
					t.Errorf("no JSON: %s", l)
				}
			}
		})
	}
}

func TestTailHidesMessagesForTheModelAlone(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.create(&v1alpha1.ChatMessage{ObjectMeta: p.meta("hint"), Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: "triage"}, Content: "the build is red", Visibility: v1alpha1.VisibleToModel}})
	hint := p.sent()
	p.begin(hint)
	p.answer(hint, "I look at it")
	tail := p.start("token", "", "--gateway", p.gateway, "tail", "triage", "--history")
	tail.waitOutput("I look at it")
	if strings.Contains(tail.out.String(), "the build is red") {
		t.Errorf("it showed %s", tail.out.String())
	}
	if notes := tail.errOut.String(); !strings.Contains(notes, "a message for the model alone: hint") {
		t.Errorf("nobody is told that there is one: %s", notes)
	}
}

func TestTailShowsNotesAtTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			if err := p.start("token", "", "send", "triage", "the question", "--no-follow").wait(); err != nil {
				t.Fatal(err)
			}
			question := p.sent()
			p.begin(question)
			c := p.start("token", "", "send", "triage", "the customer\ncalled", "--visibility", "People")
			if err := c.wait(); err != nil || !strings.HasSuffix(c.out.String(), " created\n") {
				t.Fatalf("shown %q, %v", c.out.String(), err)
			}
			var notes v1alpha1.ChatMessageList
			if err := p.c.List(t.Context(), &notes, client.InNamespace(p.namespace),
				client.MatchingFields{"spec.visibility": "People"}); err != nil || len(notes.Items) != 1 {
				t.Fatalf("there are %d notes: %v", len(notes.Items), err)
			}
			note := &notes.Items[0]
			note.Status = v1alpha1.ChatMessageStatus{State: v1alpha1.MessageNoted, ChatUID: string(p.chat.UID),
				Index: new(int64(1))}
			p.updateStatus(note)
			p.answer(question, "the answer")
			tail := p.start(kubeconfig, "", "--gateway", p.gateway, "tail", "triage", "--history")
			tail.waitOutput("▎> the question\n▎[note:]\n▎  the customer\n▎  called\nthe answer\n")
		})
	}
}

func TestTailSaysWhoChangedAnothersWords(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	meta := p.meta("changed")
	meta.Annotations = map[string]string{v1alpha1.AnnotationCreatedBy: "anna", v1alpha1.AnnotationEditedBy: "ben"}
	p.create(&v1alpha1.ChatMessage{ObjectMeta: meta,
		Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: "triage"}, Content: "first question"}})
	changed := p.sent()
	p.begin(changed)
	p.answer(changed, "first answer")
	tail := p.start("token", "", "--gateway", p.gateway, "tail", "triage", "--history")
	tail.waitOutput("first answer")
	if notes := tail.errOut.String(); !strings.Contains(notes, "changed by ben") {
		t.Errorf("it noted %s", notes)
	}
}

func TestTailEndsQuietlyWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.start("token", "", "--gateway", p.gateway, "tail", "triage", "-o", "json")
	c.waitOutput(`"event":"status"`)
	c.stop()
	if err := c.wait(); err != nil {
		t.Error(err)
	}
}

func TestErrorsNameTheWayOut(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"no such chat": {[]string{"send", "other", "hello"},
			"namespace " + p.namespace + " has no chat other: there is triage"},
		"no such chat here": {[]string{"tail", "other"}, "has no chat other: there is triage"},
		"no gateway": {[]string{"send", "triage", "hello", "--gateway-namespace", p.namespace},
			"is Parley installed there?"},
		"an odd output": {[]string{"tail", "triage", "-o", "yaml"}, "it can be json"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := p.start("token", "", tt.args...).wait(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
