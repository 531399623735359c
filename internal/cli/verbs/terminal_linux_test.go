// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
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

func TestConversationShowsWhatItCannotBegin(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.chat.Status.Conditions = ready(metav1.ConditionFalse, "ModelConfigNotFound", "")
	p.chat.Status.Wait = &v1beta1.ChatWait{For: v1beta1.WaitForModelConfig, Reason: "ModelConfigNotFound",
		Since: metav1.Now()}
	p.updateStatus(p.chat)
	p.write("first", "why?")
	a := p.opens()
	a.Sees("▎> why? [waits]")
	a.Press("a", "Enter")
	a.Sees("▎> a [waits]")
	a.Press("b", "Enter")
	a.Sees("▎> why? [waits]\n\n▎> a [waits]\n\n▎> b [waits]\n")
	a.Press("C-d")
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
	a.Sees("[needs approval: Tab, then a approves, d denies]")
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
	a.Sees("▎> not sent")
	a.Press("C-c")
	a.Sees("Enter sends", "\n▎>\n")
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
	a.Press("Tab", "e")
	a.Sees("\n▎> And then?!\n")
	a.Press("C-u", "Enter")
	a.Sees("▎[the message was withdrawn; arrow up shows it]")
	eventually(t, "the message is deleted", func() bool {
		return apierrors.IsNotFound(p.c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	})
	a.Types("/mode Plan")
	a.Press("Enter")
	a.Sees("▎[the mode of the chat is now Plan]")
	a.Types("/model large")
	a.Press("Enter")
	a.Sees("▎[the model of the chat is now large]")
	a.Types("/effort Some")
	a.Press("Enter")
	a.Sees("▎type /effort none|minimal|low|")
	a.Press("C-u")
	a.Types("/effort max")
	a.Press("Enter")
	a.Sees("▎[the effort of the chat is now Max]")
	p.get(p.chat)
	check.Equal(t, "settings", "Plan large Max",
		fmt.Sprint(p.chat.Spec.Mode, " ", p.chat.Spec.ModelConfigRef.Name, " ", p.chat.Spec.ReasoningEffort))
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
	a.Sees("message waits was changed meanwhile, and stays as it is", "▎> And then?!")
	check.Equal(t, "text", "Do not delete anything!", p.content(m))
	a.Press("C-c", "C-c", "C-c")
	a.Ends(exitDone)
	check.Equal(t, "text", "Do not delete anything!", p.content(m))
	check.Equal(t, "held", "", m.Annotations[v1beta1.AnnotationHoldUntil])
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

// opens starts the conversation with the chat on a screen, with variables of the environment.
func (p *person) opens(variables ...string) *tmux.Terminal {
	p.t.Helper()
	program, err := os.Executable()
	check.OK(p.t, err)
	return tmux.Start(p.t, append(variables, asProgram+"=1"), program, "--kubeconfig", p.files["token"], "--gateway",
		p.gateway, "send", "triage")
}
