// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// sent waits for the message that the plug-in creates.
func (p *person) sent() *v1beta1.ChatMessage {
	p.t.Helper()
	return find(p, "a message was sent", &v1beta1.ChatMessageList{}, func(m *v1beta1.ChatMessage) bool {
		return m.Spec.Role == v1beta1.RoleUser && m.Status.State == ""
	})
}

// write creates a message of another client.
func (p *person) write(name, text string, change ...func(*v1beta1.ChatMessage)) {
	p.t.Helper()
	p.create(chattest.In(p.namespace, chattest.User("triage", name, append(change, chattest.Content(text))...)))
}

func ready(status metav1.ConditionStatus, reason v1beta1.ConditionReason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status, Reason: string(reason), Message: message,
		LastTransitionTime: metav1.Now()}}
}

// commit puts a message at the chat's head, as the reconciler would, and writes nothing yet.
func (p *person) commit(name string) {
	h := &p.chat.Status.History
	h.Version, h.Length, h.Head = h.Version+1, h.Length+1, name
}

// begin begins the turn of a message.
func (p *person) begin(m *v1beta1.ChatMessage) {
	h := p.chat.Status.History
	p.commit(m.Name)
	p.chat.Status.Turn = &v1beta1.TurnStatus{Message: m.Name, Parent: h.Head, Index: h.Length,
		HistoryVersion: h.Version + 1}
	p.chat.Status.Conditions = ready(metav1.ConditionUnknown, v1beta1.ReasonGenerating, "")
	p.updateStatus(p.chat)
	p.settle(m, ready(metav1.ConditionUnknown, v1beta1.ReasonAnswering, ""))
}

// settle writes what became of a message.
func (p *person) settle(m *v1beta1.ChatMessage, conditions []metav1.Condition) {
	turn := p.chat.Status.Turn
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, ChatUID: string(p.chat.UID),
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
func answering(chat *v1beta1.Chat) *v1beta1.Chat {
	busy := chat.DeepCopy()
	busy.Status.Generation = &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: "pod"}
	return busy
}

// answer ends the turn of a message with a reply.
func (p *person) answer(m *v1beta1.ChatMessage, text string) {
	p.reply(chattest.Says(text))
	p.chat.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonAnswered, "")
	p.updateStatus(p.chat)
	p.settle(m, ready(metav1.ConditionTrue, v1beta1.ReasonAnswered, ""))
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
		"a token of a cloud":                  {kubeconfig: "opaque", note: "--accept-opaque-tokens"},
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
			c.shows("fine, thanks\n", tt.note)
			if got := c.errOut.String(); tt.note == "" && got != "" {
				t.Errorf("noted %q", got)
			}
		})
	}
}

func TestSendFailsWithTheReasonOfTheMessage(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	failed := p.start("token", "from a pipe", "--gateway", p.gateway, "send", "triage", "-")
	m := p.sent()
	check.Equal(t, "sent", "from a pipe", m.Spec.Content)
	p.begin(m)
	p.chat.Status.Conditions = ready(metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorOverloaded),
		"anthropic has no capacity")
	p.updateStatus(p.chat)
	p.settle(m, ready(metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorOverloaded),
		"anthropic has no capacity"))
	failed.failsWith("Overloaded: anthropic has no capacity")
	rejected := p.run("--gateway", p.gateway, "send", "triage", "one too many")
	m = p.sent()
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageRejected,
		Conditions: ready(metav1.ConditionFalse, v1beta1.ReasonQueueFull, "20 messages wait")}
	p.updateStatus(m)
	rejected.failsWith("QueueFull: 20 messages wait")
}

func TestSendCanLeaveTheReplyAlone(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("send", "triage", "hello", "--no-follow").shows("chatmessage.parley.dev/" + p.sent().Name + " created\n")
}

func TestTailEndsWhenTheChatIsDeleted(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			p.said("first", "first question")
			history := p.start(kubeconfig, "", "--gateway", p.gateway, "tail", "triage", "--history")
			history.waitOutput("▎> first question\nthe answer to first question\n")
			now := p.start(kubeconfig, "", "--gateway", p.gateway, "tail", "triage", "-o", "json")
			now.waitOutput(`"event":"status"`)
			p.write("second", "second question")
			second := p.sent()
			p.begin(second)
			p.answer(second, "second answer")
			history.waitOutput("▎> second question\nsecond answer\n")
			now.waitOutput("second answer")
			p.delete(p.chat)
			history.succeeds()
			now.succeeds()
			check.Lacks(t, now.out.String(), "first question")
			for l := range strings.Lines(now.out.String()) {
				if !json.Valid([]byte(l)) {
					t.Errorf("no JSON: %s", l)
				}
			}
		})
	}
}

// Security (an author of messages): can send the model a message whose text transcripts do not show; they show its
// existence and name.
func TestTailHidesMessagesForTheModelAlone(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("hint", "the build is red", func(m *v1beta1.ChatMessage) { m.Spec.Visibility = v1beta1.VisibleToModel })
	hint := p.sent()
	p.begin(hint)
	p.answer(hint, "I look at it")
	tail := p.run("--gateway", p.gateway, "tail", "triage", "--history")
	tail.waitOutput("I look at it")
	check.Lacks(t, tail.out.String(), "the build is red")
	check.Contains(t, tail.errOut.String(), "a message for the model alone: hint")
}

func TestTailShowsNotesAtTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			p.run("send", "triage", "the question", "--no-follow").succeeds()
			question := p.sent()
			p.begin(question)
			check.Contains(t, p.exact("send", "triage", "the customer\ncalled", "--visibility", "Users"), " created\n")
			note := find(p, "a note is created", &v1beta1.ChatMessageList{}, func(m *v1beta1.ChatMessage) bool {
				return m.Spec.Visibility == v1beta1.VisibleToUsers
			})
			note.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageNoted, ChatUID: string(p.chat.UID),
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
	p.write("changed", "first question", func(m *v1beta1.ChatMessage) {
		m.Annotations = map[string]string{v1beta1.AnnotationCreatedBy: "anna", v1beta1.AnnotationEditedBy: "ben"}
	})
	changed := p.sent()
	p.begin(changed)
	p.answer(changed, "first answer")
	tail := p.run("--gateway", p.gateway, "tail", "triage", "--history")
	tail.waitOutput("first answer")
	tail.waitNote("changed by ben")
}

func TestTailEndsQuietlyWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.run("--gateway", p.gateway, "tail", "triage", "-o", "json")
	c.waitOutput(`"event":"status"`)
	c.stop()
	c.succeeds()
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
		t.Run(name, func(*testing.T) {
			p.run(tt.args...).fails(tt.want)
		})
	}
}

func TestAGatewayOutOfReachIsTold(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("--server", "http://127.0.0.1:1", "ls").exits(exitTimedOut, "connection refused")
	for _, args := range []string{"tail triage", "send triage hello", "tail triage -o json"} {
		args = "--gateway http://127.0.0.1:1 " + args
		c := p.run(strings.Fields(args)...)
		c.waitNote("▎[the gateway is out of reach")
		if got := c.errOut.String(); !strings.Contains(got, "connection refused]\n") || c.out.String() != "" {
			t.Errorf("%s: told %q, shown %q", args, got, c.out.String())
		}
		c.stop()
		_ = c.wait()
	}
}
