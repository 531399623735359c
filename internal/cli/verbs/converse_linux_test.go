// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/terminal"
)

// Keys as terminals send them.
const (
	enter = "\r"
	up    = "\x1b[A"
	stop  = "\x03"
	leave = "\x04"
)

func TestPersonTalksToChatAtTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	p := newPerson(t)
	a := p.sits("send", "triage")
	a.sees("ctrl-D leaves]")
	a.sees(terminal.Prompt)
	a.types("how are you?\x7f" + enter)
	m := p.sent()
	if m.Spec.Content != "how are you" {
		t.Errorf("sent %q", m.Spec.Content)
	}
	p.begin(m)
	p.answer(m, "fine\x1b[2J, thanks\n▎> bye")
	a.sees(`fine\u001b[2J, thanks` + "\r\n" + `\u258e> bye` + "\r\n")
	a.sees(terminal.Prompt)
	p.write("other", "somebody else")
	m = p.sent()
	p.begin(m)
	a.sees("▎> somebody else")
	p.answer(m, "the answer to both")
	a.sees("the answer to both\r\n")
	a.sees(terminal.Prompt)
	a.types("\x1b[200~two\x1b[2J\nlines\x1b[201~")
	a.sees("lines")
	a.types(enter)
	if m = p.sent(); m.Spec.Content != "two[2J\nlines" {
		t.Errorf("sent %q", m.Spec.Content)
	}
	p.begin(m)
	p.answer(m, "so it is")
	a.sees("so it is\r\n")
	a.types(up)
	a.sees("lines")
	a.types("\x15" + leave)
	a.ends(0)
}

func TestCtrlCInterruptsTheTurnAndThenLeaves(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	p := newPerson(t)
	a := p.sits("send", "triage")
	a.sees("ctrl-D leaves]")
	a.types("an essay" + enter)
	m := p.sent()
	a.types(stop)
	p.annotated(v1alpha1.AnnotationInterrupt)
	a.sees("▎[interrupting; ctrl-C again leaves]")
	p.chat.Annotations = nil
	p.update(p.chat)
	p.begin(m)
	p.answer(m, "Networks are")
	a.sees("Networks are\r\n")
	a.sees(terminal.Prompt)
	a.types("not sent")
	a.types(stop)
	a.sees("▎[ctrl-C again, or ctrl-D in an empty line, leaves]")
	a.sees(terminal.Prompt + "not sent")
	a.types("!" + stop)
	a.sees("▎[ctrl-C again")
	a.types(stop)
	a.ends(0)
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(p.chat), p.chat); err != nil || len(p.chat.Annotations) > 0 {
		t.Errorf("it was interrupted again: %v, %v", p.chat.Annotations, err)
	}
}

func TestWhatIsRefusedIsInTheLineAgain(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	p := newPerson(t)
	a := p.sits("send", "triage")
	a.sees("ctrl-D leaves]")
	binding := &rbacv1.RoleBinding{ObjectMeta: p.meta("person")}
	p.get(binding)
	p.delete(binding)
	eventually(t, "the person has no rights", func() bool { return !p.mayGetChats() })
	a.types("what I wrote" + enter)
	a.sees("▎kubectl chat: the message is not sent: ")
	a.sees("what I wrote")
	binding.ResourceVersion = ""
	p.create(binding)
	eventually(t, "the person has the rights again", p.mayGetChats)
	a.types(" in vain" + enter)
	m := p.sent()
	if m.Spec.Content != "what I wrote in vain" {
		t.Errorf("sent %q", m.Spec.Content)
	}
	m.Status = v1alpha1.ChatMessageStatus{State: v1alpha1.MessageRejected,
		Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonQueueFull, "20 messages wait")}
	p.updateStatus(m)
	a.sees("▎kubectl chat: QueueFull: 20 messages wait")
	a.sees(terminal.Prompt + "what I wrote in vain")
	p.delete(p.chat)
	a.sees("the chat was deleted")
	a.ends(exitNotFound)
}

func TestColoursAreNotForEverybody(t *testing.T) {
	for noColor, coloured := range map[string]bool{"": true, "1": false} {
		t.Setenv("NO_COLOR", noColor)
		p := newPerson(t)
		a := p.sits("send", "triage")
		a.sees("triage: Enter sends")
		a.types("hello" + enter)
		m := p.sent()
		p.begin(m)
		p.answer(m, "# So\n**be** it")
		eventually(t, "the answer is shown", func() bool {
			return strings.Contains(a.seen.String(), "it") && strings.HasSuffix(a.seen.String(), terminal.Prompt)
		})
		if got := a.seen.String(); strings.Contains(got, terminal.BoldStyle+"# So") != coloured {
			t.Errorf("with NO_COLOR=%q it shows %q", noColor, got)
		}
		a.types(leave)
		a.ends(0)
	}
}

func TestApprovalShowsTheCallAndAsks(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	no := p.sits("approve", "triage", "call_2")
	no.sees("call_2 (current_time):")
	no.sees("Approve call call_2 of chat triage? [y/N]")
	no.types("\r")
	if code := <-no.code; code == 0 {
		t.Error("it was approved")
	}
	no.sees("nothing was decided")
	yes := p.sits("approve", "triage", "call_2")
	yes.sees("[y/N]")
	yes.types("y\r")
	a := p.approval()
	if a.Spec.Digest != p.chat.Status.RequiresAction.ToolCalls[1].Digest {
		t.Errorf("created %+v", a.Spec)
	}
	a.Status.Conditions = ready(metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	p.updateStatus(a)
	if code := <-yes.code; code != 0 {
		t.Errorf("it ended with %d", code)
	}
}
