// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
)

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
	check.Equal(t, "digest", p.chat.Status.RequiresAction.ToolCalls[1].Digest, a.Spec.Digest)
	a.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
	p.updateStatus(a)
	if code := <-yes.code; code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// past waits until calls were shown for so long that a person can decide about them.
func (a *typist) past() {
	shown := time.Now()
	eventually(a.t, "the calls were shown for a while", func() bool { return time.Since(shown) > converse.ReadTime })
}

func TestSendLetsPersonDecideAboutCalls(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.sits("send", "triage", "what is the time?")
	m := p.sent()
	p.begin(m)
	p.want(func(calls []v1beta1.PendingToolCall) { calls[2].Decision = nil })
	digest := p.chat.Status.RequiresAction.ToolCalls[1].Digest
	a.sees("[the chat waits for you until ")
	a.sees("call_2 (current_time) needs approval")
	a.sees("type y1 to approve it, n1 to deny it")
	a.sees("type y2 to approve it, n2 to deny it")
	a.sees(" answer triage call_1=JSON")
	a.types("y\n")
	a.sees("[type y1 or n1: the number says which call is meant]")
	a.types("no\n")
	a.sees("[type y1 or n1: the number says which call is meant]")
	a.types("y1 if it is late\n")
	a.sees(`kubectl chat: no call with the number "1 if it is late" was shown`)
	for _, more := range []string{"2", "n2, Y3", "and 2"} {
		a.types("n1 " + more + "\n")
		a.sees("kubectl chat: nothing was decided, because \"" + more + "\" may mean other calls")
	}
	a.past()
	a.types("n2 Ask the sun\ny1\n")
	eventually(t, "both are decided", func() bool { return p.decisions() == 2 })
	var all v1beta1.ToolApprovalList
	check.OK(t, p.c.List(t.Context(), &all, client.InNamespace(p.namespace)))
	for i := range all.Items {
		made := &all.Items[i]
		want := v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: "triage"}, ToolCallID: "call_3",
			Decision: v1beta1.DecisionDeny, Comment: "Ask the sun"}
		if made.Spec.Decision == v1beta1.DecisionApprove {
			want.ToolCallID, want.Decision, want.Digest = "call_2", v1beta1.DecisionApprove, digest
			want.Comment = ""
		}
		check.Equal(t, "decision", want, made.Spec)
		made.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
		p.updateStatus(made)
		a.sees("[call " + want.ToolCallID + " (current_time) was ")
	}
	p.chat.Status.RequiresAction, p.chat.Status.Phase = nil, v1beta1.ChatRunning
	p.updateStatus(p.chat)
	p.answer(m, "it is noon")
	a.ends(exitDone)
}

func TestEarlyAnswerDecidesNothing(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.sits("send", "triage", "what is the time?")
	p.begin(p.sent())
	a.types("y1\n")
	p.want()
	a.sees("type y1 to approve it")
	a.sees("kubectl chat: call call_2 was not decided, because it has only just been shown")
	a.types("y2\n")
	a.sees(`kubectl chat: no call with the number "2" was shown`)
	check.Equal(t, "decisions", 0, p.decisions())
	a.types(leave)
	a.sees(" approve triage call_2 --digest")
}

func TestPersonWithoutRightSeesCommands(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	role := &rbacv1.Role{ObjectMeta: p.meta("person")}
	p.get(role)
	role.Rules[0].Resources = []string{"chats", "chatmessages"}
	p.update(role)
	eventually(t, "the person may not decide", func() bool { return !p.may("create", "toolapprovals") })
	p.want()
	p.sits("send", "triage", "what is the time?").sees(" approve triage call_2 --digest")
	p.sits("send", "triage", "--plain").sees(" approve triage call_2 --digest")
}

func TestDeletionAsksAtATerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys    string
		code    int
		deleted bool
	}{
		"yes":               {"y\n", exitDone, true},
		"yes in full":       {"YES\n", exitDone, true},
		"no":                {"n\n", exitUsage, false},
		"nothing":           {"\n", exitUsage, false},
		"something else":    {"yo\n", exitUsage, false},
		"the end of input":  {leave, exitUsage, false},
		"a name by mistake": {"triage\n", exitUsage, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			p.said("first", "one")
			a := p.sits("delete", "triage")
			a.sees("Delete chat triage with its 2 messages, sub-chats and workspace included? [y/N] ")
			a.types(c.keys)
			a.ends(c.code)
			err := p.c.Get(t.Context(), client.ObjectKeyFromObject(p.chat), p.chat)
			check.Equal(t, "deleted", c.deleted, apierrors.IsNotFound(err))
			if !c.deleted {
				a.sees("kubectl chat: chat triage is kept")
			}
		})
	}
}

func TestInterruptEndsQuestions(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	for args, question := range map[string]string{
		"delete triage":          "included? [y/N] ",
		"approve triage call_2":  "chat triage? [y/N] ",
		"redact triage":          "Text to remove (not shown): ",
		"archives redact triage": "Text to remove (not shown): ",
	} {
		a := p.sits(strings.Fields(args)...)
		a.sees(question)
		if strings.Contains(args, "redact") {
			eventually(t, "the terminal shows nothing", func() bool { return a.mode().Lflag&unix.ECHO == 0 })
		}
		a.stop()
		a.sees("\r\nkubectl chat: reading the ")
		a.ends(exitStopped)
	}
	p.get(p.chat)
	check.Equal(t, "decisions", 0, p.decisions())
}

func TestNobodyIsAskedWhoHasAgreed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.sits("delete", "triage", "--yes")
	a.ends(exitDone)
	a.sees("chat.parley.dev/triage deleted")
}

// typist is a person at a terminal with the plug-in.
type typist struct {
	*person
	terminal *os.File
	program  *os.File
	before   *unix.Termios
	seen     pty.Output
	code     chan int
	stop     context.CancelFunc
}

// sits starts the plug-in at a terminal.
func (p *person) sits(args ...string) *typist {
	p.t.Helper()
	hand, program := pty.Open(p.t)
	a := &typist{person: p, terminal: hand, program: program, code: make(chan int, 1)}
	a.before = a.mode()
	ctx, cancel := context.WithCancel(p.t.Context())
	a.stop = cancel
	p.t.Cleanup(cancel)
	go func() { _, _ = io.Copy(&a.seen, hand) }()
	args = append([]string{"--kubeconfig", p.files["token"], "--gateway", p.gateway}, args...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.code <- Run(ctx, genericiooptions.IOStreams{In: program, Out: program, ErrOut: program}, args)
	}()
	p.t.Cleanup(func() { <-ended }) // Before the terminal is closed.
	return a
}

func (a *typist) mode() *unix.Termios {
	a.t.Helper()
	mode, err := unix.IoctlGetTermios(int(a.program.Fd()), unix.TCGETS)
	check.OK(a.t, err)
	return mode
}

// types presses keys.
func (a *typist) types(keys string) {
	a.t.Helper()
	if _, err := a.terminal.WriteString(keys); err != nil {
		a.t.Fatal(err)
	}
}

// sees waits until the words were shown, and forgets what was shown until then.
func (a *typist) sees(words string) {
	a.t.Helper()
	a.seen.Sees(a.t, words)
}

// ends waits until the plug-in has ended, and checks its exit code and that the terminal is as it was.
func (a *typist) ends(code int) {
	a.t.Helper()
	select {
	case got := <-a.code:
		check.Equal(a.t, "it ends with", code, got)
		check.Equal(a.t, "terminal mode", a.before, a.mode())
	case <-time.After(time.Minute):
		a.t.Fatalf("it does not end; it shows %q", a.seen.String())
	}
}
