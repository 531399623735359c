// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// maxInput is the most lines of the input that are shown, and maxLines the most that it has.
const maxInput, maxLines = 6, 10000

// target is what the input is for: a call that it answers, or denies for a reason, or a queued message that it
// replaces; else a message.
type target struct {
	call   *v1beta1.PendingToolCall
	denies bool
	queued *v1beta1.ChatMessage
}

// key identifies the target among drafts. An edit of a message that was changed meanwhile has another one.
func (t target) key() string {
	switch {
	case t.denies:
		return "deny " + t.call.ID + " " + t.call.Digest
	case t.call != nil:
		return "answer " + t.call.ID + " " + t.call.Digest
	case t.queued != nil:
		return fmt.Sprint("edit ", t.queued.Name, " ", t.queued.UID, " ", t.queued.Generation)
	}
	return ""
}

// newInput returns an empty input.
func newInput() textarea.Model {
	input := textarea.New()
	input.Prompt = terminal.Mark + "> "
	input.ShowLineNumbers = false
	input.DynamicHeight, input.MaxHeight, input.MaxContentHeight = true, maxInput, maxLines
	input.CharLimit = v1beta1.MaxContentBytes
	input.SetStyles(textarea.Styles{})
	input.SetVirtualCursor(false)
	input.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	input.Focus()
	return input
}

// lineBreaks are those that terminals paste.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// composer is the input, what it is for, and what was typed before.
type composer struct {
	input   textarea.Model
	history history
	target  target
	// drafts holds what was typed and is not in the input, by the key of its target.
	drafts map[string]string
	// release ends the hold of the message that is edited; nil if there is none.
	release func()
}

func newComposer() composer { return composer{input: newInput(), drafts: map[string]string{}} }

// paste adds a text to the input, which cannot have every text; notice says what was changed.
func (c *composer) paste(text string) (notice string) {
	text = lineBreaks.Replace(text)
	c.input, _ = c.input.Update(tea.PasteMsg{Content: text})
	if !strings.Contains(c.input.Value(), text) {
		notice = fmt.Sprintf("[the paste was changed: tabs are spaces, control characters are removed, and a text has at "+
			"most %d lines and %d characters]", maxLines, v1beta1.MaxContentBytes)
	}
	return notice
}

// keepDraft keeps what was typed.
func (c *composer) keepDraft() {
	text := c.history.reset(c.input.Value())
	if strings.TrimSpace(text) != "" && (c.target.queued == nil || text != c.target.queued.Spec.Content) {
		c.drafts[c.target.key()] = text
	}
}

// showDraft shows what was typed earlier for the target.
func (c *composer) showDraft() {
	key := c.target.key()
	c.input.SetValue(c.drafts[key])
	delete(c.drafts, key)
}

// endHold returns what releases the message that is edited; nil if there is none.
func (c *composer) endHold() func() outcome {
	release := c.release
	if c.release = nil; release == nil {
		return nil
	}
	return func() outcome {
		release()
		return outcome{}
	}
}

// aim has the input answer a call, replace a message, or be a message. What was typed for something else is kept.
func (m *model) aim(at target) tea.Cmd {
	m.composer.keepDraft()
	endSelection(m)
	cmd := m.requests.add(m.composer.endHold())
	m.setTarget(at)
	m.composer.showDraft()
	return cmd
}

// setTarget sets what the input is for. The chat does not start a message while it is edited.
func (m *model) setTarget(at target) {
	if m.composer.target = at; at.queued != nil && !m.leaving {
		m.composer.release = m.actions.Hold(m.ctx, at.queued)
	}
}

// enter sends what was typed. What is no valid command stays in the input.
func (m *model) enter() tea.Cmd {
	text, at, release := m.composer.input.Value(), m.composer.target, m.composer.release
	var command, argument, complaint string
	if at == (target{}) {
		command, argument, complaint = ParseCommand(text)
	}
	if complaint != "" {
		say(m, complaint)
		return nil
	}
	if at.queued == nil {
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
	}
	if at == (target{}) {
		m.composer.history.add(text)
	}
	m.notice, m.composer.target, m.composer.release = nil, target{}, nil
	m.composer.input.Reset()
	m.composer.showDraft()
	switch {
	case at.denies:
		return m.decide(*at.call, v1beta1.DecisionDeny, text)
	case at.call != nil:
		return m.decide(*at.call, v1beta1.DecisionApprove, text)
	case at.queued != nil:
		return changeQueued(m, at, text, release)
	case command != "":
		return m.command(command, argument)
	}
	return m.send(text)
}

// changeQueued changes or withdraws a queued message, and then releases it.
func changeQueued(m *model, at target, text string, release func()) tea.Cmd {
	words, kept := "[the message was changed]", text
	if strings.TrimSpace(text) == "" {
		text, words, kept = "", "[the message was withdrawn; arrow up shows it]", at.queued.Spec.Content
		m.turn.withdrawn[at.queued.Name] = true
	}
	m.composer.history.add(kept)
	return m.requests.add(func() outcome {
		err := m.actions.Edit(m.ctx, at.queued, text)
		release()
		return outcome{words: []string{words}, err: err, text: text, target: at}
	})
}

func (m *model) send(text string) tea.Cmd {
	name := m.actions.NewName()
	m.turn.open = append(m.turn.open, openMessage{name, text})
	m.turn.sent = name // From now on keys interrupt: the turn may begin before the API server answers.
	m.pane.scrolled = false
	return m.requests.addInOrder(func() outcome {
		err := m.actions.Send(m.ctx, name, text)
		return outcome{name: name, text: text, err: err, sent: err == nil}
	})
}

// await waits until the chat has a message that was sent, or refuses it.
func await(ctx context.Context, actions Chat, name, text string) tea.Cmd {
	return func() tea.Msg {
		if err := actions.Await(ctx, name); err != nil {
			return outcome{name: name, text: text, err: err}
		}
		return nil
	}
}

// editQueued puts the selected message of the queue into the input. If something else is selected, the key is text.
func (m *model) editQueued(k tea.KeyPressMsg, name string) tea.Cmd {
	it := m.pane.selection()
	if it == nil || it.queued == "" {
		return typeText(m, k, name)
	}
	message := it.queued
	if m.composer.target.queued != nil && m.composer.target.queued.Name == message {
		endSelection(m)
		return nil
	}
	return func() tea.Msg {
		read, err := m.actions.Read(m.ctx, message)
		if err != nil {
			return outcome{err: err}
		}
		return read
	}
}

// showQueued puts a message into the input that was read for that, unless the person does something else now.
func (m *model) showQueued(read *v1beta1.ChatMessage) tea.Cmd {
	if !m.browsing || m.list.open || m.leaving {
		return nil
	}
	text, probe := read.Spec.Content, newInput()
	probe.SetWidth(m.width)
	probe.SetValue(text)
	if probe.Value() != text || terminal.Unmarked(printable.Escape(text)) != text {
		say(m, fmt.Sprintf("[the input cannot show the text as it is: edit it with kubectl chat edit %s %s]", m.name,
			read.Name))
		return nil
	}
	cmd := m.aim(target{queued: read})
	if m.composer.input.Value() == "" {
		m.composer.input.SetValue(text)
	}
	return cmd
}

// history holds the texts that were sent, and what is typed below them.
type history struct {
	texts []string
	draft string
	// back is how many texts above the draft the input shows.
	back int
}

func (h *history) add(text string) {
	if h.back > 0 && h.draft != "" {
		h.texts = append(h.texts, h.draft)
	}
	h.texts, h.draft, h.back = append(h.texts, text), "", 0
}

// reset ends a recall. It returns the draft: the text of the input, unless that is a recalled one.
func (h *history) reset(text string) (draft string) {
	if h.back > 0 && text == h.texts[len(h.texts)-h.back] {
		text = h.draft
	}
	h.draft, h.back = "", 0
	return text
}

// recall shows the text before or behind the one that the input shows, when its first or last line is left. It reports
// whether there is such a text.
func (h *history) recall(input *textarea.Model, name string) bool {
	back, last := h.back+1, 0
	if name == "down" {
		back, last = h.back-1, input.LineCount()-1
	}
	if input.Line() != last || back < 0 || back > len(h.texts) {
		return false
	}
	if h.back == 0 {
		h.draft = input.Value()
	}
	h.back = back
	text := h.draft
	if back > 0 {
		text = h.texts[len(h.texts)-back]
	}
	input.SetValue(text)
	return true
}
