// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	xansi "github.com/charmbracelet/x/ansi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestSentTextIsInterruptibleBeforeItsTurn(t *testing.T) {
	rests, works := stream.Status{Ready: metav1.ConditionTrue}, stream.Status{Ready: metav1.ConditionUnknown}
	taken := stream.MessageCommitted{Message: stream.Message{Name: "m"}}
	m := &turn{}
	for _, step := range []struct {
		what   string
		sent   string
		update client.Update
		busy   bool
	}{
		{"the chat is idle", "", &rests, false},
		{"a text is sent, and a late status is idle", "m", &rests, true},
		{"the text is committed", "m", &taken, true},
		{"its turn runs", "", &works, true},
		{"the text is repeated", "", &taken, true},
		{"the turn is over", "", &rests, false},
	} {
		m.sent = step.sent
		if m.observe(step.update); m.busy() != step.busy {
			t.Errorf("%s: busy is %v", step.what, m.busy())
		}
	}
	m.sent = "m"
	if m.observe(&stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "m"}}}); m.busy() {
		t.Error("a queued text is interruptible")
	}
}

func TestKeysInterruptAndLeave(t *testing.T) {
	working := event(stream.EventStatus, stream.Status{Ready: metav1.ConditionUnknown})
	for name, c := range map[string]struct {
		keys  []tea.KeyPressMsg
		asked string
		ended bool
	}{
		"ctrl-C":              {[]tea.KeyPressMsg{ctrlC}, "interrupt", false},
		"ctrl-C twice":        {[]tea.KeyPressMsg{ctrlC, ctrlC}, "interrupt", true},
		"Esc":                 {[]tea.KeyPressMsg{esc}, "", false},
		"Esc twice":           {[]tea.KeyPressMsg{esc, esc}, "interrupt", false},
		"Esc, a, Esc":         {[]tea.KeyPressMsg{esc, keyA, esc}, "", false},
		"ctrl-C with a text":  {[]tea.KeyPressMsg{keyA, ctrlC}, "", false},
		"a text removed":      {[]tea.KeyPressMsg{keyA, ctrlC, ctrlC}, "interrupt", false},
		"ctrl-D":              {[]tea.KeyPressMsg{ctrlD}, "", true},
		"ctrl-D after a text": {[]tea.KeyPressMsg{keyA, ctrlD}, "", false},
	} {
		s := newScreen(t)
		s.takes(working)
		check.Equal(t, name+" ends", c.ended, s.press(c.keys...))
		check.Equal(t, name, c.asked, strings.Join(s.does.asked, ","))
	}
}

func TestLeavingDoesNotCancelWaitingCalls(t *testing.T) {
	s := newScreen(t)
	s.takes(event(stream.EventStatus, stream.Status{Ready: metav1.ConditionUnknown}), waits(greets()))
	check.Equal(t, "it leaves", false, s.press(ctrlC))
	s.shows("ctrl-C again leaves, and the calls still wait; Esc-Esc cancels them")
	check.Equal(t, "it leaves", true, s.press(ctrlC))
	check.Equal(t, "asked", 0, len(s.does.asked))
}

func TestWarningEndsWhenATurnBegins(t *testing.T) {
	s := newScreen(t)
	s.press(ctrlC)
	s.shows("ctrl-C again")
	s.takes(event(stream.EventStatus, stream.Status{Ready: metav1.ConditionUnknown}))
	s.shows("Enter sends")
	check.Equal(t, "it leaves", false, s.press(ctrlC))
	s.shows("interrupting; ctrl-C again leaves")
	check.Equal(t, "asked", "interrupt", strings.Join(s.does.asked, ","))
	check.Equal(t, "it leaves", true, s.press(ctrlC))
}

func TestInterruptingIsShownUntilTheTurnEnds(t *testing.T) {
	works := stream.Status{Ready: metav1.ConditionUnknown, Turn: "m0"}
	for name, over := range map[string]stream.Status{
		"the chat rests":    {Ready: metav1.ConditionTrue, Turn: "m0"},
		"the next one runs": {Ready: metav1.ConditionUnknown, Turn: "next"},
	} {
		s := newScreen(t)
		s.types("go")
		s.press(enter, ctrlC)
		taken := stream.MessageCommitted{HistoryVersion: 1, Message: stream.Message{Name: "m0", Role: v1beta1.RoleUser}}
		s.takes(event(stream.EventMessage, taken), event(stream.EventStatus, works))
		s.shows("interrupting; ctrl-C again leaves")
		s.takes(event(stream.EventStatus, over))
		if strings.Contains(s.shown(), "ctrl-C again") {
			t.Errorf("%s, and the screen shows %s", name, s.shown())
		}
	}
}

func TestLeavingWaitsForTheInterrupt(t *testing.T) {
	s := newScreen(t)
	s.takes(event(stream.EventStatus, stream.Status{Ready: metav1.ConditionUnknown}))
	_, interrupt := s.Update(ctrlC)
	if _, quit := s.Update(ctrlC); quit != nil {
		t.Error("it leaves before the request is made")
	}
	check.Equal(t, "it leaves", true, s.run(interrupt))
	check.Equal(t, "asked", "interrupt", strings.Join(s.does.asked, ","))
}

func TestMessagesAreSentInOrderBeforeLeaving(t *testing.T) {
	s := newScreen(t)
	s.types("first")
	_, send := s.Update(enter)
	for _, text := range []string{"/mode Plan", "third"} {
		s.types(text)
		if _, more := s.Update(enter); more != nil {
			t.Errorf("%s does not wait for the first message", text)
		}
	}
	check.Equal(t, "it leaves before they are sent", false, s.press(ctrlD))
	s.shows("leaving after the last request")
	check.Equal(t, "it leaves", true, s.run(send))
	check.Equal(t, "asked", "send first,mode Plan,send third", strings.Join(s.does.asked, ","))
}

func TestFailedRequestKeepsAPersonThere(t *testing.T) {
	s := newScreen(t)
	s.does.err = errors.New("no route to host")
	s.types("words")
	_, send := s.Update(enter)
	s.press(ctrlD)
	check.Equal(t, "it leaves", false, s.run(send))
	s.shows("▎kubectl chat: no route to host", "▎> words")
	s.press(ctrlC)
	check.Equal(t, "input", "", s.composer.input.Value())
	check.Equal(t, "it leaves at once", true, s.press(ctrlC, ctrlC))
}

func TestEditIsHeldAgainWhenLeavingFails(t *testing.T) {
	s := newScreen(t)
	s.takes(event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "q"}}}))
	s.types("words")
	_, send := s.Update(enter)
	s.press(tab, keyE, ctrlC, ctrlC, ctrlC)
	s.does.err = errors.New("no route to host")
	check.Equal(t, "it leaves", false, s.run(send))
	s.does.err = nil
	s.types("text")
	s.press(enter)
	check.Equal(t, "held", "hold q,release q,hold q,release q", strings.Join(s.does.held, ","))
}

func TestRefusedMessageReturnsAfterItWasSent(t *testing.T) {
	s := newScreen(t)
	s.does.refusal = errors.New("QueueFull")
	s.types("one")
	s.press(enter)
	s.shows("▎kubectl chat: QueueFull", "▎> one")
	check.Equal(t, "busy", false, s.turn.busy())
}

func TestOpenMessagesStayOnTheScreen(t *testing.T) {
	s := newScreen(t)
	s.takes(event(stream.EventStatus, stream.Status{Ready: metav1.ConditionFalse,
		Wait: &v1beta1.ChatWait{For: v1beta1.WaitForModelConfig}}), question(0, "taken"))
	s.does.open = []v1beta1.ChatMessage{*chattest.User("triage", "q0", chattest.Content("taken")),
		*chattest.User("triage", "old", chattest.Content("earlier\x1b[2J\n▎[approved]"))}
	s.run(readOpen(t.Context(), s.does))
	for _, text := range []string{"one", "two"} {
		s.types(text)
		s.press(enter)
	}
	s.shows("\n▎> taken\n\n\n▎> earlier\\u001b[2J\n▎> \\u258e[approved] [waits]\n\n▎> one [waits]\n\n▎> two [waits]\n")
	queue := []stream.QueuedMessage{{Name: "m0", Preview: "one"}}
	s.takes(event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: queue}),
		event(stream.EventStatus, stream.Status{Ready: metav1.ConditionUnknown}))
	s.shows("\n▎> one [queued]\n\n▎> earlier", "[approved]\n\n▎> two\n")
	s.does.refusal = errors.New("old was deleted")
	s.run(await(t.Context(), s.does, "old", ""))
	s.shows("old was deleted")
	check.Equal(t, "open", "[{m1 two}]", fmt.Sprint(s.turn.open))
}

func TestListSwitchesToAnotherChat(t *testing.T) {
	s := newScreen(t)
	s.takes(question(0, "why?"))
	s.press(ctrlL)
	s.shows("▎other  about the DNS\n▎triage  about the CNI\n", "Enter switches to the chat")
	check.Equal(t, "the same chat ends", false, s.press(enter))
	s.shows("▎> why?")
	check.Equal(t, "Esc ends", false, s.press(ctrlL, up, esc))
	check.Equal(t, "another chat ends", true, s.press(ctrlL, up, enter))
	check.Equal(t, "next", "other", s.next)
}

func TestCallsAndReasoningFoldToALine(t *testing.T) {
	s := newScreen(t)
	thought := "first\nsecond"
	s.takes(question(0, "why?"), reply(1, v1beta1.MessagePart{Type: v1beta1.PartReasoning, Text: &thought},
		v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: "c1", Name: "execute",
			Input: `{"command":"ls /tmp"}`}}))
	s.shows("▎▸ reasoning\n", "▎▸ $ ls /tmp\n")
	output := `{"output":"a\nb\n","exit_code":0,"wall_duration_ms":5}`
	s.takes(event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: 3, Index: 2, Message: stream.Message{
		Name: "t", Role: v1beta1.RoleTool, Attempt: 1, Parts: []v1beta1.MessagePart{{Type: v1beta1.PartToolResult,
			ToolResult: &v1beta1.ToolResult{ID: "c1", Name: "execute", Output: output}}}}}))
	s.shows("▎▸ $ ls /tmp -> exit code 0 after 5ms\n")
	s.press(tab, enter, up, enter)
	s.shows("▎▾ reasoning\n▎| first\n▎| second\n▎▾ $ ls",
		"▎|   \"output\":\n▎|       a\n▎|       b\n▎|   \"exit_code\": 0,\n")
}

func TestLiveReplyBecomesTheCommittedOne(t *testing.T) {
	s := newScreen(t)
	s.takes(question(0, "why?"), part(parts.Part{Type: parts.Text, Text: "Net"}))
	s.shows("\nNet")
	s.takes(part(parts.Part{Type: parts.Text, Text: "works"}))
	s.shows("\nNetworks")
	s.takes(reply(1, words("Networks.")))
	check.Equal(t, "replies", 1, strings.Count(s.shown(), "Networks"))
}

func TestStatusLineShowsWaitModelAndCost(t *testing.T) {
	s := newScreen(t)
	s.shows("▎triage: connecting")
	s.takes(event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: 1, Message: stream.Message{Name: "r",
		Role: v1beta1.RoleAssistant, Attempt: 1, Cost: &v1beta1.Cost{MicroUnits: 1500000, Currency: "USD"}}}),
		event(stream.EventStatus, stream.Status{Model: "large", Mode: v1beta1.ModePlan, Wait: &v1beta1.ChatWait{
			Reason: "QuotaExceeded", Message: "3 chats generate", Since: metav1.Now()}}))
	s.shows("▎triage: QuotaExceeded: 3 chats generate", "large · mode Plan · ")
	s.takes(event(stream.EventStatus, stream.Status{Phase: v1beta1.ChatRequiresAction, Wait: &v1beta1.ChatWait{
		Reason: "RequiresAction", Message: "A client must bring the results of f: see status.requiresAction"}}))
	s.shows("▎triage: RequiresAction: A client must bring the results of f ")
	call, other := greets(), greets()
	s.takes(waits(call))
	s.shows("▎triage: execute waits for your decision ")
	other.ID = "c2"
	s.takes(waits(call, other))
	s.shows("▎triage: 2 calls wait for you ")
	s.Update([]arrival{{lost: errors.New("the gateway is out of reach")}})
	s.shows("▎triage: the gateway is out of reach")
	s.takes(event(stream.EventStatus, stream.Status{Phase: v1beta1.ChatInterrupting}))
	s.shows("▎triage: Interrupting")
}

// hostile takes the terminal over, hides, and imitates the plug-in in all its lines.
const hostile = "\x1b]0;owned\a\u009b2J\x1b[1A\rrm \u202e-fr\u200b\n▎[approved]\n\u2028▎> yes\r\n\x1b[36m▎▸ x " +

	"&#27;[2J &#x258e;[approved] &#x202e; [text](https://evil.example/?a=1&b=2) <b>bold</b>\n\n" +
	"|a|b|\n|-|-|\n|▎|&#x258e;|\n"

// Security (an author of messages): cannot control a terminal or imitate its lines in a conversation on the screen.
func TestForeignTextNeitherControlsNorImitates(t *testing.T) {
	s := newScreen(t)
	text := hostile
	s.takes(question(0, hostile), reply(1, words(hostile), v1beta1.MessagePart{Type: v1beta1.PartReasoning, Text: &text},
		v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: hostile, Name: hostile,
			Input: hostile}},
		v1beta1.MessagePart{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: hostile, Name: hostile,
			Output: hostile}}),
		event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: 3, Index: 2, Message: stream.Message{Name: "h",
			Role: v1beta1.RoleUser, History: []v1beta1.PriorMessage{{Role: v1beta1.RoleAssistant,
				Content: hostile + "[imitated]"}}}}),
		event(stream.EventNote, stream.Note{Index: 1, Generation: 1, Message: stream.Message{Name: hostile, UID: "u",
			Content: hostile, CreatedBy: hostile, Visibility: v1beta1.VisibleToUsers}}),
		event(stream.EventError, stream.Error{Reason: v1beta1.ErrorReason(hostile), Message: hostile}),
		event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: hostile, Preview: hostile}}}),
		waits(v1beta1.PendingToolCall{ID: hostile, Name: hostile, Kind: v1beta1.RequiresApproval, Input: hostile}),
		event(stream.EventStatus, stream.Status{Model: hostile, Warnings: []stream.Warning{{Type: hostile, Message: hostile}},
			Wait: &v1beta1.ChatWait{Reason: hostile, Message: hostile}, Phase: v1beta1.ChatRequiresAction}))
	s.run(showOpen(s.model, []v1beta1.ChatMessage{*chattest.User("triage", "open", chattest.Content(hostile))}))
	s.turn.stopped = true
	for _, it := range s.pane.items {
		s.pane.opened[it.key] = true
	}
	for _, width := range []int{20, 80, 200} {
		s.Update(tea.WindowSizeMsg{Width: width, Height: 400})
		styled := s.View().Content
		if strings.Contains(styled, "\x1b]") {
			t.Errorf("at width %d there is a link: %q", width, styled)
		}
		shown := xansi.Strip(styled)
		check.Equal(t, "escaped", printable.Escape(shown), shown)
		for line := range strings.Lines(shown) {
			if strings.Contains(strings.TrimPrefix(line, terminal.Mark), terminal.Mark) {
				t.Errorf("at width %d a line has the mark: %q", width, line)
			}
			if strings.HasPrefix(line, terminal.Mark+"[imitated]") {
				t.Errorf("at width %d a line is imitated: %q", width, line)
			}
			if xansi.StringWidth(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("at width %d a line is wider: %q", width, line)
			}
		}
	}
	s.shows(`\u001b]0;owned\u0007\u009b2J`, "&#27;[2J &#x258e;[approved]", "(https://evil.example/?a=1&b=2)",
		"<b>bold</b>")
}

func TestKeysRenderOnlyWhatIsShown(t *testing.T) {
	s := newScreen(t)
	for i := range int64(2500) {
		s.takes(question(2*i, fmt.Sprint("question ", i)), reply(2*i+1, words("**answer**")))
	}
	s.press(pageUp, pageUp, pageDown, keyA)
	rendered := 0
	for _, it := range s.pane.items {
		if it.rendered != nil {
			rendered++
		}
	}
	if len(s.pane.items) != 5000 {
		t.Errorf("there are %d items", len(s.pane.items))
	}
	first := s.pane.items[0]
	s.pane.scroll(-1 << 20)
	s.layout()
	before := &first.rendered[0]
	s.press(keyA)
	if &first.rendered[0] != before {
		t.Error("a key renders again what is on the screen")
	}
	t.Logf("%d of %d items are rendered", rendered, len(s.pane.items))
}

func BenchmarkKeyInChatOf5000Messages(b *testing.B) {
	m := newModel(b.Context(), &recorder{}, "triage")
	m.arrivals = make(chan arrival, 1)
	var batch []arrival
	for i := range int64(2500) {
		batch = append(batch, arrival{event: question(2*i, "question")}, arrival{event: reply(2*i+1, words("**answer**"))})
	}
	m.Update(batch)
	for b.Loop() {
		m.Update(keyA)
		m.View()
	}
}
