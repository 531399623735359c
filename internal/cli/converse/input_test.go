// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/test/kit/check"
)

func TestCommandsAreDoneAndOtherTextIsSent(t *testing.T) {
	s := newScreen(t)
	for _, text := range []string{"/model large", "/model", "/mode plan", "/Effort XHIGH", "/effort default", "/compact",
		"/tmp/x is full", " /etc", "/fork", "/fork second"} {
		s.types(text)
		s.press(enter)
		if text == "/compact" {
			s.shows("\n▎[compact is done]\n▎[a remark of it]\n▎triage: ")
		}
		if text == "/fork" {
			s.shows("\n▎[fork is done]\n▎[a remark of it]\n▎[or switch here: ctrl-L lists the chats]\n")
		}
	}
	check.Equal(t, "asked", "model large,model ,mode Plan,effort XHigh,effort default,compact ,"+
		"send /tmp/x is full,send /etc,fork ,fork second", strings.Join(s.does.asked, ","))
	for _, text := range []string{"/quit", "/exit"} {
		s.types(text)
		check.Equal(t, text+" leaves", true, s.press(enter))
		s.leaving = false
	}
}

func TestHelpFitsAScreen(t *testing.T) {
	s := newScreen(t)
	s.types("/help")
	s.press(enter)
	s.shows("▎/model [NAME]: ", "\n▎/effort none|minimal|low|medium|high|xhigh|max|default: ", "\n▎/quit: ",
		"d denies", "e edits", "Option on macOS\n\n▎triage: ")
}

func TestRefusedCommandStaysInTheInput(t *testing.T) {
	for text, why := range map[string]string{
		"/foo":             "there is no command /foo: /help lists them; begin with a blank to send it as\n▎… text\n",
		"/aprove 1":        "there is no command /aprove: ",
		"/mode":            "type /mode plan|explore|default\n",
		"/mode bla":        "type /mode plan|explore|default\n",
		"/effort bla":      "type /effort none|minimal|low|medium|high|xhigh|max|default\n",
		"/clear now":       "type /clear\n",
		"/fork one two":    "type /fork [NAME]",
		"/model one\n/foo": "type /model ",
	} {
		s := newScreen(t)
		s.Update(tea.PasteMsg{Content: text})
		s.press(enter)
		s.shows("\n▎" + why)
		check.Equal(t, "input", text, s.composer.input.Value())
		check.Equal(t, "asked", 0, len(s.does.asked))
	}
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
	check.Equal(t, "it leaves", true, s.press(ctrlC, ctrlC, ctrlC))
	check.Equal(t, "asked", "edit q 1  the whole\ntext!", strings.Join(s.does.asked, ","))
	check.Equal(t, "held", strings.TrimSuffix(strings.Repeat("hold q,release q,", 3), ","), strings.Join(s.does.held, ","))
}

func TestQueuedMessageIsWithdrawn(t *testing.T) {
	s := newScreen(t)
	s.does.text = "the text"
	s.takes(event(stream.EventQueueUpdate, stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "q"}}}))
	gone := outcome{name: "q", text: "the text", err: errors.New("the message was deleted")}
	withdraw := func() {
		s.press(tab, keyE)
		s.composer.input.SetValue(" ")
		s.press(enter)
	}
	s.does.err = errors.New("it has begun")
	withdraw()
	s.shows("▎kubectl chat: it has begun")
	check.Equal(t, "input", "", s.composer.input.Value())
	s.does.err = nil
	withdraw()
	s.Update(gone) // What waited for its reply.
	s.shows("▎[the message was withdrawn; arrow up shows it]")
	check.Equal(t, "input", "", s.composer.input.Value())
	check.Equal(t, "asked", "edit q 1 ,edit q 2 ", strings.Join(s.does.asked, ","))
	s.press(up)
	check.Equal(t, "input", "the text", s.composer.input.Value())
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
