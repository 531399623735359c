// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// confirmation is a question whether to decide about a call. It is asked because a letter may be meant as text.
type confirmation struct {
	call     v1beta1.PendingToolCall
	decision v1beta1.ApprovalDecision
	since    time.Time
	// early is set if a key has come too early to be meant.
	early bool
}

// line is the question, with as much of the call as fits.
func (q *confirmation) line(width int) string {
	before, after := fmt.Sprintf("%s call %s (", q.decision, q.call.ID), ")? y/n"
	before = terminal.Mark + terminal.EscapeLine(before)
	what := terminal.EscapeLine(render.CallLine(q.call.Name, q.call.Input))
	return before + clip(what, width-lipgloss.Width(before+after)) + after
}

func ask(m *model, call *v1beta1.PendingToolCall, decision v1beta1.ApprovalDecision) {
	m.question = &confirmation{call: *call, decision: decision, since: m.pane.now()}
}

// keys says which keys act.
func (q *confirmation) keys() string {
	keys := "y decides, n returns"
	if q.decision == v1beta1.DecisionDeny {
		keys = "y decides, r adds a reason, n returns"
	}
	if q.early {
		return "that key came too early to be meant; " + keys
	}
	return keys
}

// answer handles a key while a question is asked. A y or r that comes as fast as the letters of a word does nothing.
func answer(m *model, k tea.KeyPressMsg, name string) tea.Cmd {
	q := m.question
	withReason := name == "r" && q.decision == v1beta1.DecisionDeny
	if (name == "y" || withReason) && m.pane.now().Sub(q.since) < ReadTime {
		q.early = true
		return nil
	}
	m.question = nil
	switch {
	case name == "y":
		return m.decide(q.call, q.decision, "")
	case withReason:
		return m.aim(target{call: &q.call, denies: true})
	case name != "n" && k.Text != "":
		return typeText(m, k, name)
	}
	return nil
}

// typing reports whether keys are text.
func typing(m *model) bool { return !m.browsing && !m.list.open }

// endSelection returns to the input.
func endSelection(m *model) { m.browsing, m.pane.selected, m.question = false, "", nil }

// typeText returns to the input with a key that is text.
func typeText(m *model, k tea.KeyPressMsg, name string) tea.Cmd {
	endSelection(m)
	return m.edit(k, name, "")
}

// inputView is the input. While keys are no text, there is another line in its place: colours alone do not say so.
func inputView(m *model) string {
	line := terminal.Mark + "[select mode: Esc returns to typing; letters are commands]"
	switch {
	case typing(m):
		return m.composer.input.View()
	case m.question != nil && !m.list.open:
		line = m.question.line(m.width)
	}
	return selectedStyle.Render(clip(line, m.width))
}
