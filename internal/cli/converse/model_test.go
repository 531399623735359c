// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"
	"time"

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

// recorder is a Chat that records what it is asked for, and fails with err. It refuses messages with refusal.
type recorder struct {
	asked, held  []string
	text         string
	err, refusal error
}

func (r *recorder) Follow(context.Context, func(error)) iter.Seq2[stream.Event, error] {
	return func(func(stream.Event, error) bool) {}
}

func (r *recorder) NewName() string { return fmt.Sprintf("m%d", len(r.asked)) }

func (r *recorder) record(format string, args ...any) error {
	r.asked = append(r.asked, fmt.Sprintf(format, args...))
	return r.err
}

func (r *recorder) Send(_ context.Context, _, text string) error { return r.record("send %s", text) }
func (r *recorder) Await(context.Context, string) error          { return r.refusal }
func (r *recorder) Interrupt(context.Context) error              { return r.record("interrupt") }
func (r *recorder) Decide(_ context.Context, call v1beta1.PendingToolCall, d v1beta1.ApprovalDecision, input string,
) error {
	return r.record("%s %s %s", d, call.Digest, input)
}

func (r *recorder) Command(_ context.Context, name, argument string) ([]string, error) {
	return []string{name + " is done", "a remark\nof it"}, r.record("%s %s", name, argument)
}

func (r *recorder) Read(_ context.Context, name string) (*v1beta1.ChatMessage, error) {
	m := chattest.User("triage", name, chattest.Content(r.text))
	m.Generation = int64(len(r.asked)) + 1
	return m, nil
}

func (r *recorder) Hold(_ context.Context, m *v1beta1.ChatMessage) func() {
	r.held = append(r.held, "hold "+m.Name)
	return func() { r.held = append(r.held, "release "+m.Name) }
}

func (r *recorder) Edit(_ context.Context, read *v1beta1.ChatMessage, text string) error {
	return r.record("edit %s %d %s", read.Name, read.Generation, text)
}

func (r *recorder) Chats(context.Context) ([]Listed, error) {
	return []Listed{{"other", "other  about the DNS"}, {"triage", "triage  about the CNI"}}, r.err
}

// screen is a model with a person before it.
type screen struct {
	*model

	t    *testing.T
	does *recorder
}

func newScreen(t *testing.T) *screen {
	does := &recorder{}
	s := &screen{model: newModel(t.Context(), does, "triage"), t: t, does: does}
	s.arrivals = make(chan arrival, 1)
	now := time.Now()
	s.pane.now = func() time.Time { now = now.Add(time.Second); return now }
	s.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	return s
}

// takes passes events to the model.
func (s *screen) takes(events ...stream.Event) {
	batch := make([]arrival, len(events))
	for i, e := range events {
		batch[i].event = e
	}
	s.Update(batch)
}

// press presses keys, and does at once what the model asks for. It reports whether the model ends.
func (s *screen) press(keys ...tea.KeyPressMsg) (ended bool) {
	for _, k := range keys {
		_, cmd := s.Update(k)
		ended = s.run(cmd) || ended
	}
	return ended
}

// run does what the model asks for. It reports whether the model ends.
func (s *screen) run(cmd tea.Cmd) (ended bool) {
	if cmd == nil {
		return false
	}
	switch msg := cmd().(type) {
	case tea.QuitMsg:
		return true
	case tea.BatchMsg:
		for _, cmd := range msg {
			ended = s.run(cmd) || ended
		}
	case outcome, *v1beta1.ChatMessage, []Listed:
		_, cmd = s.Update(msg)
		return s.run(cmd)
	}
	return ended
}

func (s *screen) types(text string) {
	for _, r := range text {
		s.press(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

var (
	enter    = tea.KeyPressMsg{Code: tea.KeyEnter}
	esc      = tea.KeyPressMsg{Code: tea.KeyEscape}
	tab      = tea.KeyPressMsg{Code: tea.KeyTab}
	up       = tea.KeyPressMsg{Code: tea.KeyUp}
	down     = tea.KeyPressMsg{Code: tea.KeyDown}
	ctrlL    = tea.KeyPressMsg{Code: 'l', Mod: tea.ModCtrl}
	pageUp   = tea.KeyPressMsg{Code: tea.KeyPgUp}
	pageDown = tea.KeyPressMsg{Code: tea.KeyPgDown}
	ctrlC    = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	ctrlD    = tea.KeyPressMsg{Code: 'd', Mod: tea.ModCtrl}
	keyA     = tea.KeyPressMsg{Code: 'a', Text: "a"}
	keyE     = tea.KeyPressMsg{Code: 'e', Text: "e"}
	keyD     = tea.KeyPressMsg{Code: 'd', Text: "d"}
	keyR     = tea.KeyPressMsg{Code: 'r', Text: "r"}
	keyN     = tea.KeyPressMsg{Code: 'n', Text: "n"}
	keyY     = tea.KeyPressMsg{Code: 'y', Text: "y"}
)

// shown is the screen without styles, and without spaces at the ends of lines.
func (s *screen) shown() string { return blanks.ReplaceAllString(xansi.Strip(s.View().Content), "") }

var blanks = regexp.MustCompile(`(?m) +$`)

func (s *screen) shows(words ...string) {
	s.t.Helper()
	check.Contains(s.t, s.shown(), words...)
}

func event(name string, data any) stream.Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return stream.Event{Name: name, Data: raw}
}

func question(index int64, text string) stream.Event {
	return event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: index + 1, Index: index,
		Message: stream.Message{Name: fmt.Sprint("q", index), Role: v1beta1.RoleUser, Content: text}})
}

func reply(index int64, text ...v1beta1.MessagePart) stream.Event {
	return event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: index + 1, Index: index,
		Message: stream.Message{Name: fmt.Sprint("r", index), Role: v1beta1.RoleAssistant, Attempt: 1, Parts: text}})
}

func words(text string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartText, Text: &text}
}

func part(p parts.Part) stream.Event {
	return event(stream.EventMessagePart, stream.MessagePart{HistoryVersion: 1, Attempt: 1, Role: "Assistant", Part: p})
}

func waits(calls ...v1beta1.PendingToolCall) stream.Event {
	for i := range calls {
		calls[i].Digest = calls[i].CallDigest()
	}
	return event(stream.EventRequiresAction, stream.RequiresAction{ToolCalls: calls})
}

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
		"ctrl-D":              {[]tea.KeyPressMsg{ctrlD}, "", true},
		"ctrl-D after a text": {[]tea.KeyPressMsg{keyA, ctrlD}, "", false},
	} {
		s := newScreen(t)
		s.takes(working)
		check.Equal(t, name+" ends", c.ended, s.press(c.keys...))
		check.Equal(t, name, c.asked, strings.Join(s.does.asked, ","))
	}
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
	check.Equal(t, "it leaves at once", true, s.press(ctrlC, ctrlC))
}

func TestEditIsHeldAgainWhenLeavingFails(t *testing.T) {
	s := newScreen(t)
	s.takes(event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "q"}}}))
	s.types("words")
	_, send := s.Update(enter)
	s.press(tab, keyE, ctrlC, ctrlC)
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

func TestRefusedTextReturnsWithItsReason(t *testing.T) {
	s := newScreen(t)
	s.does.err = errors.New("QueueFull")
	s.types("one")
	s.press(enter)
	s.shows("▎kubectl chat: QueueFull", "▎> one")
	s.does.err = nil
	s.press(enter)
	s.types("draft")
	s.press(up)
	s.shows("\n▎> one")
	s.press(down)
	s.shows("\n▎> draft")
	check.Equal(t, "asked", "send one,send one", strings.Join(s.does.asked, ","))
}

// Security (a hostile model): cannot have a call approved in a terminal that shows only a part of it.
func TestApprovalNeedsTheWholeCallRead(t *testing.T) {
	s := newScreen(t)
	call := v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval,
		Input: `{"command":"` + strings.Repeat(`true\n`, 60) + `rm x"}`}
	s.takes(waits(call))
	call.Digest = call.CallDigest()
	s.types("ad")
	check.Equal(t, "asked while typing", 0, len(s.does.asked))
	s.press(tab, enter, keyA)
	s.shows("▎  c1 (execute):", "read the call to its end first")
	s.press(pageDown, keyA)
	check.Equal(t, "asked before the end", 0, len(s.does.asked))
	s.press(pageDown, pageDown, pageDown, keyA, keyY)
	s.shows(`rm x"`, "▎[call c1 (execute) was approved]")
	check.Equal(t, "asked", "Approve "+call.Digest+" ", strings.Join(s.does.asked, ","))
}

// painted is what bubbletea paints in a terminal that adds up the widths of characters, as most do.
func (s *screen) painted() string {
	lines := strings.Split(s.View().Content, "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(xansi.HardwrapWc(lines[i], s.width, true), "\n")
	}
	return strings.Join(lines, "\n")
}

// Security (a hostile model): cannot push a part of a call beyond the edge of the terminal, and have it approved.
func TestCallIsPaintedWholeOrNotApproved(t *testing.T) {
	for name, filler := range map[string]string{
		"joined": "👩" + strings.Repeat("\u200d👩", 60), "tones": strings.Repeat("👍🏽", 60),
		"variants": strings.Repeat("❤\ufe0f", 90), "conjuncts": strings.Repeat("स्ते", 90),
	} {
		for _, width := range []int{6, 80} {
			s := newScreen(t)
			s.Update(tea.WindowSizeMsg{Width: width, Height: 400})
			s.takes(waits(v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval,
				Input: `{"command":"` + filler + `; rm"}`}))
			s.press(tab)
			seen := strings.Contains(s.painted(), "rm")
			s.press(keyA, keyY)
			if approved := len(s.does.asked) > 0; approved && !seen || !approved && width == 80 {
				t.Errorf("%s at width %d: rm is on the screen: %v, approved: %v", name, width, seen, approved)
			}
		}
	}
}

func TestChangedOrResizedCallIsReadAgain(t *testing.T) {
	long := `{"command":"` + strings.Repeat(`true\n`, 60) + `"}`
	change := map[string]func(*screen){
		"another input": func(s *screen) {
			s.takes(waits(v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval, Input: long + " "}))
			s.press(tab)
		},
		"another width": func(s *screen) { s.Update(tea.WindowSizeMsg{Width: 30, Height: 24}) },
	}
	for name, do := range change {
		s := newScreen(t)
		s.takes(waits(v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval, Input: long}))
		s.press(tab, pageDown, pageDown, pageDown, pageDown)
		do(s)
		s.press(keyA, keyY)
		check.Equal(t, name, 0, len(s.does.asked))
	}
}

func TestInputAnswersACallAndReturnsWhenRefused(t *testing.T) {
	s := newScreen(t)
	call := v1beta1.PendingToolCall{ID: "c1", Name: "ask", Kind: v1beta1.RequiresApproval,
		ApprovalCause: v1beta1.ApprovalInputRequired, InputRequests: `{"q":{"params":{"message":"Your name?"}}}`}
	s.takes(waits(call))
	call.Digest = call.CallDigest()
	s.shows("Your name?", "[asks for input: r answers, d denies]")
	s.types("a draft")
	s.press(tab, keyA, keyR)
	s.does.err = errors.New("no object")
	s.types("x")
	s.press(enter)
	s.shows("▎kubectl chat: no object; r at the call shows what you wrote", "▎> a draft")
	s.does.err = nil
	s.press(tab, keyR)
	s.shows("▎> x", "Enter answers call c1")
	s.press(enter, tab, keyD, keyY)
	check.Equal(t, "asked", strings.Join([]string{"Approve " + call.Digest + " x", "Approve " + call.Digest + " x",
		"Deny " + call.Digest + " "}, ","), strings.Join(s.does.asked, ","))
}

func TestCommandsAreDoneAndOtherTextIsSent(t *testing.T) {
	s := newScreen(t)
	for _, text := range []string{"/model large", "/compact", "/mode", "/clear now", "/etc", "/tmp/x is full", "/fork",
		"/fork second", "/help"} {
		s.types(text)
		s.press(enter)
		if text == "/compact" {
			s.shows("\n▎[compact is done]\n▎[a remark of it]\n▎triage: ")
		}
		if text == "/mode" {
			s.shows("▎type /mode Plan|Explore|none")
		}
	}
	s.shows("▎[/model NAME, /mode Plan|Explore|none, /effort LEVEL, /compact, /clear, /fork\n▎… [NAME]]\n" +
		"▎[keys: Enter sends, ")
	check.Equal(t, "asked", "model large,compact ,send /etc,send /tmp/x is full,fork ,fork second",
		strings.Join(s.does.asked, ","))
}

func TestQueuedMessageIsEdited(t *testing.T) {
	s := newScreen(t)
	s.does.text = " the whole\ntext"
	queue := []stream.QueuedMessage{{Name: "q", Preview: "the wh…"}}
	s.takes(event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: queue}))
	s.shows("▎> the wh… [queued]")
	s.press(tab, keyE)
	s.shows("▎>  the whole\n▎> text", "Enter changes the queued message")
	s.types("!")
	s.press(enter)
	s.shows("▎[the message was changed]")
	s.press(tab, keyE, esc)
	check.Equal(t, "input", "", strings.TrimSpace(s.composer.input.Value()))
	s.press(tab, keyE)
	check.Equal(t, "it leaves", true, s.press(ctrlC, ctrlC))
	check.Equal(t, "asked", "edit q 1  the whole\ntext!", strings.Join(s.does.asked, ","))
	check.Equal(t, "held", strings.TrimSuffix(strings.Repeat("hold q,release q,", 3), ","), strings.Join(s.does.held, ","))
}

// Security (an author of messages): cannot imitate or hide text in the input of a person who edits a queued message.
func TestTextThatInputCannotShowIsNotEdited(t *testing.T) {
	for _, text := range []string{"a \u202egpj.exe", "zero\u200bwidth", "x\n" + terminal.Mark + "[approved]", "a\tb",
		"a\r\nb", strings.Repeat("x\n", 2*maxLines)} {
		s := newScreen(t)
		s.does.text = text
		s.takes(event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "q"}}}))
		s.types("a draft")
		s.press(tab, keyE)
		s.shows("edit it with kubectl chat edit\n▎… triage q]")
		s.press(esc)
		s.shows("\n▎> a draft")
		check.Equal(t, "held", 0, len(s.does.held))
	}
}

func TestChangedPasteIsNoted(t *testing.T) {
	for text, changed := range map[string]bool{"one\rtwo\r\nthree": false, "漢字 👩": false, "a\tb": true, "a\x01b": true,
		strings.Repeat("x\r", maxLines) + "end": true} {
		s := newScreen(t)
		s.types("a draft")
		s.press(tea.KeyPressMsg{Code: tea.KeyLeft})
		s.Update(tea.PasteMsg{Content: text})
		if noted := strings.Contains(strings.Join(s.notice, ""), "the paste was changed"); noted != changed {
			t.Errorf("%.20q: notice %q, input %.30q", text, s.notice, s.composer.input.Value())
		}
	}
}

func TestDraftsKeepTheirPurpose(t *testing.T) {
	s := newScreen(t)
	call := v1beta1.PendingToolCall{ID: "c1", Name: "ask", Kind: v1beta1.RequiresApproval,
		ApprovalCause: v1beta1.ApprovalInputRequired, InputRequests: `{"q":{"params":{"message":"Your name?"}}}`}
	s.takes(waits(call), event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "q"}}}))
	call.Digest = call.CallDigest()
	s.does.text = "text"
	s.types("sent")
	_, send := s.Update(enter)
	s.types("draft")
	s.press(tab, keyR)
	s.does.refusal = errors.New("QueueFull")
	s.run(send)
	s.shows("QueueFull; arrow up shows what you wrote", "Enter answers call c1")
	s.types("secret")
	s.press(up, esc)
	s.shows("\n▎> draft")
	s.press(up)
	s.shows("\n▎> sent")
	s.press(up)
	s.shows("\n▎> sent")
	s.press(down, tab, keyR)
	s.shows("\n▎> secret", "Enter answers call c1")
	s.press(tab, down, keyE)
	s.shows("\n▎> text", "Enter changes the queued message")
	s.types("!")
	s.press(ctrlL, up, enter)
	s.composer.keepDraft()
	check.Equal(t, "drafts", map[string]string{"": "draft", "answer c1 " + call.Digest: "secret", "edit q  2": "text!"},
		s.composer.drafts)
}

func TestHiddenDraftSurvivesARecalledText(t *testing.T) {
	s := newScreen(t)
	s.types("one")
	s.press(enter)
	s.types("draft")
	s.press(up, enter, up, up)
	s.shows("\n▎> draft")
	s.press(enter)
	s.types("other")
	s.press(up)
	s.composer.keepDraft()
	check.Equal(t, "drafts", map[string]string{"": "other"}, s.composer.drafts)
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
		event(stream.EventStatus, stream.Status{Model: "large", Wait: &v1beta1.ChatWait{Reason: "QuotaExceeded",
			Message: "3 chats generate", Since: metav1.Now()}}))
	s.shows("▎triage: QuotaExceeded: 3 chats generate", "large · ")
	s.Update([]arrival{{lost: errors.New("refused")}})
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
