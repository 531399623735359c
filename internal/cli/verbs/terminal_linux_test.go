// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"io"
	"os"
	"slices"
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
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
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
	check.Equal(t, "sent", "how are you", m.Spec.Content)
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
	p.annotated(v1beta1.AnnotationInterrupt)
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
	// Only this right: without all, the stream may end before anything is typed.
	role := &rbacv1.Role{ObjectMeta: p.meta("person")}
	p.get(role)
	rights := slices.Clone(role.Rules[0].Verbs)
	role.Rules[0].Verbs = slices.DeleteFunc(slices.Clone(rights), func(verb string) bool { return verb == "create" })
	p.update(role)
	eventually(t, "the person may not write", func() bool { return !p.may("create", "chatmessages") })
	a.types("what I wrote" + enter)
	a.sees("▎kubectl chat: the message is not sent: ")
	a.sees("what I wrote")
	role.Rules[0].Verbs = rights
	p.update(role)
	eventually(t, "the person may write again", func() bool { return p.may("create", "chatmessages") })
	a.types(" in vain" + enter)
	m := p.sent()
	check.Equal(t, "sent", "what I wrote in vain", m.Spec.Content)
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageRejected,
		Conditions: ready(metav1.ConditionFalse, v1beta1.ReasonQueueFull, "20 messages wait")}
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
	check.Equal(t, "digest", p.chat.Status.RequiresAction.ToolCalls[1].Digest, a.Spec.Digest)
	a.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
	p.updateStatus(a)
	if code := <-yes.code; code != 0 {
		t.Errorf("it ended with %d", code)
	}
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
			a.sees("Delete chat triage with its 2 messages, sub-chats included? [y/N] ")
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
}

// sits starts the plug-in at a terminal.
func (p *person) sits(args ...string) *typist {
	p.t.Helper()
	hand, program := pty.Open(p.t)
	a := &typist{person: p, terminal: hand, program: program, code: make(chan int, 1)}
	a.before = a.mode()
	go func() { _, _ = io.Copy(&a.seen, hand) }()
	args = append([]string{"--kubeconfig", p.files["token"], "--gateway", p.gateway}, args...)
	go func() {
		a.code <- Run(p.t.Context(), genericiooptions.IOStreams{In: program, Out: program, ErrOut: program}, args)
	}()
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
	case <-time.After(20 * time.Second):
		a.t.Fatalf("it does not end; it shows %q", a.seen.String())
	}
}
