// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestPlainConversationPrintsLines(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "why?")
	a := p.sits("send", "triage", "--plain")
	a.sees("ctrl-D leaves]")
	a.types("how are you?\n")
	m := p.sent()
	check.Equal(t, "sent", "how are you?", m.Spec.Content)
	p.begin(m)
	p.answer(m, "fine\x1b[2J\n▎> bye")
	a.sees(`fine\u001b[2J` + "\r\n" + `\u258e> bye` + "\r\n")
	a.types("/interrupt\n")
	p.annotated(v1beta1.AnnotationInterrupt)
	a.types(leave)
	a.ends(exitDone)
	if shown := a.seen.String(); strings.Contains(shown, "why?") {
		t.Errorf("it shows %q", shown)
	}
}

func TestPlainConversationDoesCommands(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.sits("send", "triage", "--plain")
	a.sees("ctrl-D leaves]")
	a.types("/aprove 1\n")
	a.sees("kubectl chat: there is no command /aprove: /help lists them; begin with a blank to send it as text")
	a.types("/help\n")
	a.sees("/compact: ")
	a.sees("/deny N: ")
	a.types("/mode Plan\n")
	a.sees("[the mode of the chat is now Plan]")
	a.types(" /etc\n")
	check.Equal(t, "sent", "/etc", p.sent().Spec.Content)
	a.types("/quit\n")
	a.ends(exitDone)
	check.Equal(t, "sent", "[/etc]", fmt.Sprint(p.texts()))
}

func TestPlainConversationDecidesAboutCalls(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("first", "what is the time?")
	p.begin(p.sent())
	p.want()
	a := p.sits("send", "triage", "--plain")
	a.sees("/approve and /deny decide about a call")
	a.sees("    /approve 1")
	a.sees("    /deny 1")
	a.past()
	a.types("/deny\n")
	a.sees(`kubectl chat: no call with the number "" was shown`)
	a.types("/Approve 1\n")
	a.sees("type /approve N or /deny N")
	a.types("/deny 1\n")
	made := p.approval()
	check.Equal(t, "decision", v1beta1.DecisionDeny, made.Spec.Decision)
	made.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
	p.updateStatus(made)
	a.sees("[call call_2 (current_time) was denied]")
	a.types(leave)
	a.ends(exitDone)
}
