// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"fmt"
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
	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
	"parley.dev/parley/test/kit/tmux"
)

// leave is ctrl-D as terminals send it.
const leave = "\x04"

func TestPersonTalksToChatAtTerminal(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "why?")
	a := p.opens()
	a.Sees("▎> why?", "the answer to why?", "▎triage: ")
	a.Types("how are you?")
	a.Press("BSpace", "Enter")
	m := p.sent()
	check.Equal(t, "sent", "how are you", m.Spec.Content)
	p.begin(m)
	p.answer(m, "fine\x1b[2J, **thanks**\n▎> bye &#27;[2J &#x258e;> bye")
	a.Sees(`fine\u001b[2J, thanks`+"\n", `\u258e> bye &#27;[2J &#x258e;> bye`)
	p.write("other", "somebody else")
	m = p.sent()
	p.begin(m)
	a.Sees("▎> somebody else")
	p.answer(m, "the answer to both")
	a.Sees("the answer to both")
	a.Paste("two\x1b[2J\nlines")
	a.Sees("▎> two\n▎> lines")
	a.Press("Enter")
	m = p.sent()
	check.Equal(t, "sent", "two\nlines", m.Spec.Content)
	p.begin(m)
	p.answer(m, "so it is")
	a.Sees("so it is")
	a.Press("Up")
	a.Sees("▎> two\n▎> lines")
	a.Press("C-u", "BSpace", "C-u", "C-d")
	a.Ends(exitDone)
}

func TestConversationScrollsAndOpensCalls(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("first", "what is the time?")
	m := p.sent()
	p.begin(m)
	p.reply(chattest.Says("I look."), chattest.CallsOf(v1beta1.ToolCall{ID: "call_1", Name: "current_time",
		Input: `{"timezone":"UTC"}`}))
	p.answer(m, strings.Repeat("a line  \n", 40)+"the end")
	a := p.opens()
	a.Sees("the end")
	a.Press("PageUp", "PageUp", "PageUp")
	a.Sees("▎> what is the time?", "▎▸ current_time {\"timezone\":\"UTC\"}")
	a.Press("Tab", "Enter")
	a.Sees("▎▾ current_time", `▎|   "timezone": "UTC"`)
	a.Resize(40, 12)
	a.Sees("▎▾ current_time {\"timezone\":\"UTC\"}\n")
	a.Press("Escape")
	a.Sees("Enter sends")
	a.Press(slices.Repeat([]string{"PageDown"}, 9)...)
	a.Sees("the end")
	a.Press("C-d")
	a.Ends(exitDone)
}

func TestCallIsApprovedAfterItsEndIsRead(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	call := &p.chat.Status.RequiresAction.ToolCalls[1]
	call.Input = `{"script":"` + strings.Repeat(`echo\n`, 40) + `rm -r /"}`
	digest(p.chat)
	p.updateStatus(p.chat)
	a := p.opens()
	a.Sees("[needs approval: a approves, d denies]")
	a.Press("a", "d", "BSpace", "BSpace", "Tab", "a")
	a.Sees("▎  call_2 (current_time):", "▎[read the call to its end first: PgDn scrolls;")
	a.Press("PageDown")
	a.Press("PageDown", "PageDown", "PageDown")
	a.Sees(`rm -r /"`, call.Digest[len(call.Digest)-6:])
	asked := "▎Approve call call_2 (current_time "
	eventually(t, "the call was shown for a while, and a asks", func() bool {
		a.Press("Left") // The notice goes.
		eventually(t, "the notice is gone", func() bool { return !strings.Contains(a.Screen(), "read the call") })
		a.Press("a")
		eventually(t, "a is refused or asks", func() bool {
			return strings.Contains(a.Screen(), asked) || strings.Contains(a.Screen(), "read the call")
		})
		return strings.Contains(a.Screen(), asked)
	})
	check.Equal(t, "decisions before the answer", 0, p.decisions())
	asks := time.Now()
	eventually(t, "the question was shown for a while", func() bool { return time.Since(asks) > time.Second })
	a.Press("y")
	made := p.approval()
	check.Equal(t, "approved", v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: "triage"},
		ToolCallID: "call_2", Decision: v1beta1.DecisionApprove, Digest: call.Digest}, made.Spec)
	made.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
	p.updateStatus(made)
	a.Sees("▎[call call_2 (current_time) was approved]")
	a.Press("C-d")
	a.Ends(exitDone)
}

func TestCtrlCInterruptsTheTurnAndThenLeaves(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.opens()
	a.Sees("ctrl-D leaves")
	a.Types("an essay")
	a.Press("Enter")
	m := p.sent()
	a.Press("C-c")
	p.annotated(v1beta1.AnnotationInterrupt)
	a.Sees("interrupting; ctrl-C again leaves")
	p.chat.Annotations = nil
	p.update(p.chat)
	p.begin(m)
	a.Sees("▎> an essay")
	a.Press("Escape")
	a.Sees("Esc again interrupts the turn")
	a.Press("Escape")
	p.annotated(v1beta1.AnnotationInterrupt)
	p.chat.Annotations = nil
	p.update(p.chat)
	p.answer(m, "Networks are")
	a.Sees("Networks are")
	a.Types("not sent")
	a.Press("C-c")
	a.Sees("ctrl-C again, or ctrl-D in an empty line, leaves", "▎> not sent")
	a.Types("!")
	a.Sees("not sent!")
	a.Press("C-c")
	a.Sees("ctrl-C again")
	a.Press("C-c")
	a.Ends(exitDone)
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(p.chat), p.chat); err != nil || len(p.chat.Annotations) > 0 {
		t.Errorf("it was interrupted again: %v, %v", p.chat.Annotations, err)
	}
}

func TestRefusedTextReturnsToTheInput(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.opens()
	a.Sees("ctrl-D leaves")
	// Only this right: without all, the stream may end before anything is typed.
	role := &rbacv1.Role{ObjectMeta: p.meta("person")}
	p.get(role)
	rights := slices.Clone(role.Rules[0].Verbs)
	role.Rules[0].Verbs = slices.DeleteFunc(slices.Clone(rights), func(verb string) bool { return verb == "create" })
	p.update(role)
	eventually(t, "the person may not write", func() bool { return !p.may("create", "chatmessages") })
	a.Types("what I wrote")
	a.Press("Enter")
	a.Sees("▎kubectl chat: the message is not sent: ", "▎> what I wrote")
	role.Rules[0].Verbs = rights
	p.update(role)
	eventually(t, "the person may write again", func() bool { return p.may("create", "chatmessages") })
	a.Types(" in vain")
	a.Press("Enter")
	m := p.sent()
	check.Equal(t, "sent", "what I wrote in vain", m.Spec.Content)
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageRejected,
		Conditions: ready(metav1.ConditionFalse, v1beta1.ReasonQueueFull, "20 messages wait")}
	p.updateStatus(m)
	a.Sees("▎kubectl chat: QueueFull: 20 messages wait", "▎> what I wrote in vain")
	p.delete(p.chat)
	a.Sees("▎[not sent to chat triage:]\nwhat I wrote in vain\nkubectl chat: the chat was deleted")
	a.Ends(exitNotFound)
}

func TestColoursAreNotForEverybody(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "`code`")
	for variable, coloured := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false} {
		a := p.opens(variable)
		a.Sees("the answer to code")
		if got := a.Styled(); strings.Contains(got, "\x1b[33mcode") != coloured {
			t.Errorf("with %s it shows %q", variable, got)
		}
		a.Press("C-d")
		a.Ends(exitDone)
	}
}

func TestConversationChangesChatAndQueue(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "why?")
	p.write("waits", "And then?")
	p.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "waits"}}
	p.updateStatus(p.chat)
	a := p.opens()
	a.Sees("▎> And then? [queued]")
	a.Press("Tab", "e")
	a.Sees("Enter changes the queued message", "\n▎> And then?\n")
	a.Types("!")
	a.Press("Enter")
	a.Sees("▎[the message was changed]")
	m := &v1beta1.ChatMessage{ObjectMeta: p.meta("waits")}
	p.get(m)
	check.Equal(t, "text", "And then?!", m.Spec.Content)
	a.Types("/mode Plan")
	a.Press("Enter")
	a.Sees("▎[the mode of the chat is now Plan]")
	a.Types("/model large")
	a.Press("Enter")
	a.Sees("▎[the model of the chat is now large]")
	a.Types("/effort Some")
	a.Press("Enter")
	a.Sees("▎kubectl chat: changing the effort of chat triage:")
	p.get(p.chat)
	check.Equal(t, "mode and model", "Plan large", fmt.Sprint(p.chat.Spec.Mode, " ", p.chat.Spec.ModelConfigRef.Name))
	a.Types("/fork")
	a.Press("Enter")
	a.Sees("created]")
	fork := find(p, "a fork exists", &v1beta1.ChatList{}, func(c *v1beta1.Chat) bool { return c.Spec.Fork != nil })
	a.Sees("▎[chat.parley.dev/" + fork.Name + " created]")
	a.Types("a draft")
	a.Press("C-l")
	a.Sees("▎"+fork.Name+"\n", "▎triage  Answered", "Enter switches to the chat")
	there, back := "Down", "Up" // Both have changed in the same second.
	if list := a.Screen(); strings.Index(list, fork.Name) < strings.Index(list, "▎triage  ") {
		there, back = back, there
	}
	a.Press(there, "Enter")
	a.Sees("▎" + fork.Name + ":")
	a.Press("C-l")
	a.Sees("Enter switches to the chat")
	a.Press(back, "Enter")
	a.Sees("▎triage: ", "▎> a draft")
	a.Press("C-u")
	a.Press("C-d")
	a.Ends(exitDone)
}

func TestQueuedMessageIsHeldAndNotOverwritten(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("waits", "And then?")
	p.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "waits"}}
	p.updateStatus(p.chat)
	a := p.opens()
	a.Sees("▎> And then? [queued]")
	a.Press("Tab", "e")
	a.Sees("Enter changes the queued message", "\n▎> And then?\n")
	m := &v1beta1.ChatMessage{ObjectMeta: p.meta("waits")}
	eventually(t, "it is held", func() bool { p.get(m); return m.Annotations[v1beta1.AnnotationHoldUntil] != "" })
	m.Spec.Content = "Do not delete anything!"
	p.update(m)
	a.Types("!")
	a.Press("Enter")
	a.Sees("message waits was changed meanwhile, and is not edited", "▎> And then?!")
	check.Equal(t, "text", "Do not delete anything!", p.content(m))
	a.Press("C-c", "C-c")
	a.Ends(exitDone)
	check.Equal(t, "text", "Do not delete anything!", p.content(m))
	check.Equal(t, "held", "", m.Annotations[v1beta1.AnnotationHoldUntil])
}

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
	a.types("/deny 1\n")
	made := p.approval()
	check.Equal(t, "decision", v1beta1.DecisionDeny, made.Spec.Decision)
	made.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
	p.updateStatus(made)
	a.sees("[call call_2 (current_time) was denied]")
	a.types(leave)
	a.ends(exitDone)
}

// texts returns what people have written, in the order in which it was created.
func (p *person) texts() (texts []string) {
	p.t.Helper()
	all := &v1beta1.ChatMessageList{}
	check.OK(p.t, p.c.List(p.t.Context(), all, client.InNamespace(p.namespace)))
	slices.SortFunc(all.Items, func(a, b v1beta1.ChatMessage) int {
		return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)),
			cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	for i := range all.Items {
		texts = append(texts, all.Items[i].Spec.Content)
	}
	return texts
}

func TestLeavingSendsWhatWasTypedInOrder(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	plain := p.sits("send", "triage", "--plain")
	plain.sees("ctrl-D leaves]")
	plain.types("line 0\nline 1\nline 2\nline 3\n" + leave)
	plain.ends(exitDone)
	check.Equal(t, "sent", "[line 0 line 1 line 2 line 3]", fmt.Sprint(p.texts()))
	a := p.opens()
	a.Sees("ctrl-D leaves")
	a.Press("4", "Enter", "5", "Enter", "6", "Enter", "C-d")
	a.Ends(exitDone)
	check.Equal(t, "sent", "[line 0 line 1 line 2 line 3 4 5 6]", fmt.Sprint(p.texts()))
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
	a.sees(`kubectl chat: no call with the number "" was shown`)
	a.types("perhaps\n")
	a.sees("[type y or n with the number of a call, such as y1]")
	a.past()
	a.types("n2\ny1\n")
	eventually(t, "both are decided", func() bool { return p.decisions() == 2 })
	var all v1beta1.ToolApprovalList
	check.OK(t, p.c.List(t.Context(), &all, client.InNamespace(p.namespace)))
	for i := range all.Items {
		made := &all.Items[i]
		want := v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: "triage"}, ToolCallID: "call_3",
			Decision: v1beta1.DecisionDeny}
		if made.Spec.Decision == v1beta1.DecisionApprove {
			want.ToolCallID, want.Decision, want.Digest = "call_2", v1beta1.DecisionApprove, digest
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

func TestNobodyIsAskedWhoHasAgreed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.sits("delete", "triage", "--yes")
	a.ends(exitDone)
	a.sees("chat.parley.dev/triage deleted")
}

// opens starts the conversation with the chat on a screen, with variables of the environment.
func (p *person) opens(variables ...string) *tmux.Terminal {
	p.t.Helper()
	program, err := os.Executable()
	check.OK(p.t, err)
	return tmux.Start(p.t, append(variables, asProgram+"=1"), program, "--kubeconfig", p.files["token"], "--gateway",
		p.gateway, "send", "triage")
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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.code <- Run(p.t.Context(), genericiooptions.IOStreams{In: program, Out: program, ErrOut: program}, args)
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
