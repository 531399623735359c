// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
)

// typingKeys are the keys of the input.
var typingKeys = []string{"Enter sends", "Tab selects", "PgUp scrolls", "Esc-Esc interrupts", "/help", "ctrl-D leaves"}

// fitting joins entries of the line of keys. While they are too wide, it leaves out the next of those to drop.
func fitting(width int, entries []string, drop ...string) string {
	for len(drop) > 0 && lipgloss.Width(strings.Join(entries, ", ")) > width {
		i := slices.Index(entries, drop[0])
		entries, drop = slices.Concat(entries[:i], entries[i+1:]), drop[1:]
	}
	return strings.Join(entries, ", ")
}

// keysLine says which keys act now.
func keysLine(m *model) string {
	switch {
	case m.leaving:
		return "leaving after the last request; ctrl-C leaves at once"
	case m.warned != "":
		return warningLine(m)
	case m.list.open:
		return "Up, Down select, Enter switches to the chat, Esc returns"
	case m.composer.target.denies:
		return "Enter denies call " + m.composer.target.call.ID + " for this reason, Esc returns"
	case m.composer.target.call != nil:
		return "Enter answers call " + m.composer.target.call.ID + ", Esc returns"
	case m.composer.target.queued != nil:
		return "Enter changes the queued message, or withdraws it without a text, Esc returns"
	case m.browsing:
		return selectKeys(m)
	}
	return fitting(m.width, typingKeys, "PgUp scrolls", "Esc-Esc interrupts", "Tab selects", "/help")
}

// warningLine says what the key that was pressed does when it is pressed again.
func warningLine(m *model) string {
	switch {
	case m.warned == "esc":
		return "Esc again interrupts the turn"
	case m.pane.firstWaiting() >= 0:
		return "ctrl-C again leaves, and the calls still wait; Esc-Esc cancels them"
	case m.turn.busy():
		return "interrupting; ctrl-C again leaves"
	}
	return "ctrl-C again, or ctrl-D in an empty line, leaves"
}

// selectKeys says which keys act in select mode.
func selectKeys(m *model) string {
	if m.question != nil {
		return m.question.keys()
	}
	return fitting(m.width, []string{"Up, Down select", "Enter opens", "a approves", "d denies", "r answers", "e edits"},
		"e edits", "r answers", "Enter opens")
}

// press handles a key.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	name, before := k.String(), m.warned
	if m.leaving {
		if name == "ctrl+c" {
			return tea.Quit
		}
		return nil
	}
	m.warned = ""
	switch name {
	case "ctrl+c":
		return m.interruptOrLeave(before)
	case "pgup":
		m.shownPane().scroll(1 - m.pane.height)
	case "pgdown":
		m.shownPane().scroll(m.pane.height - 1)
	default:
		switch {
		case m.list.open:
			return m.choose(m.list.press(name))
		case m.question != nil:
			return answer(m, k, name)
		case name == "ctrl+l":
			return openList(m.ctx, m.actions)
		case m.browsing:
			return m.browse(k, name)
		}
		return m.edit(k, name, before)
	}
	return nil
}

// interruptOrLeave removes what was typed, as a shell does. Without a text it interrupts the turn under way the first
// time, and leaves the second time.
func (m *model) interruptOrLeave(before string) tea.Cmd {
	if shown := m.composer.input.Value(); typing(m) && shown != "" {
		draft := m.composer.history.reset(shown)
		if draft == shown {
			draft = ""
		}
		m.composer.input.SetValue(draft)
		return nil
	}
	m.warned = "ctrl+c"
	switch {
	case before == "ctrl+c":
		return m.leave()
	case m.turn.busy() && m.pane.firstWaiting() < 0: // Who wants to leave does not cancel calls that wait.
		return m.requests.add(interrupt(m.ctx, m.actions))
	}
	return nil
}

// leave ends the program once all requests are made.
func (m *model) leave() tea.Cmd {
	m.leaving = true
	cmd := m.requests.add(m.composer.endHold())
	if m.requests.open > 0 {
		return cmd
	}
	return tea.Quit
}

// openList reads the chats, which opens the list.
func openList(ctx context.Context, actions Chat) tea.Cmd {
	return func() tea.Msg {
		chats, err := actions.Chats(ctx)
		if err != nil {
			return outcome{err: err}
		}
		return chats
	}
}

// choose leaves for another chat.
func (m *model) choose(chat string) tea.Cmd {
	if chat == "" || chat == m.name {
		return nil
	}
	m.next = chat
	return m.leave()
}

func interrupt(ctx context.Context, actions Chat) func() outcome {
	return func() outcome { return outcome{interrupts: true, err: actions.Interrupt(ctx)} }
}

// edit handles a key of the input.
func (m *model) edit(k tea.KeyPressMsg, name, before string) (cmd tea.Cmd) {
	switch name {
	case "enter":
		return m.enter()
	case "esc":
		return m.escape(before)
	case "tab":
		m.browsing = true
		m.pane.selectFirst()
		return nil
	case "ctrl+d":
		if m.composer.input.Value() == "" {
			return m.leave()
		}
	case "up", "down":
		if m.composer.target.call == nil && m.composer.history.recall(&m.composer.input, name) {
			return nil
		}
	}
	m.composer.input, cmd = m.composer.input.Update(k)
	return cmd
}

// escape returns to the message from an answer to a call or a change of a message, or interrupts the turn under way the
// second time.
func (m *model) escape(before string) tea.Cmd {
	switch {
	case m.composer.target != target{}:
		return m.aim(target{})
	case !m.turn.busy():
	case before == "esc":
		return m.requests.add(interrupt(m.ctx, m.actions))
	default:
		m.warned = "esc"
	}
	return nil
}

// browse handles a key while items are selected. Text that is no command is typed.
func (m *model) browse(k tea.KeyPressMsg, name string) tea.Cmd {
	m.notice = nil
	switch name {
	case "ctrl+d":
		return m.leave()
	case "up", "shift+tab":
		m.pane.move(-1)
	case "down", "tab":
		m.pane.move(1)
	case "esc":
		endSelection(m)
	case "enter", "space":
		m.pane.toggle()
	case "a", "d", "r":
		return m.judge(k, name)
	case "e":
		return m.editQueued(k, name)
	default:
		if k.Text != "" {
			return typeText(m, k, name)
		}
	}
	return nil
}

// judge decides about the waiting call that is selected, at any of its rows. If no call waits, the key is text.
func (m *model) judge(k tea.KeyPressMsg, name string) tea.Cmd {
	i := m.pane.waitingCall()
	switch {
	case i >= 0:
		if m.pane.items[i].key != m.pane.selected {
			m.pane.selectItem(i) // People see what they decide about.
		}
		return judgeCall(m, m.pane.items[i], name)
	case m.pane.firstWaiting() < 0:
		return typeText(m, k, name)
	}
	say(m, "[the selected line waits for no decision: select a call that waits]")
	return nil
}

// judgeCall decides about a call. It is only approved or answered after the person has seen all of it.
func judgeCall(m *model, it *item, name string) tea.Cmd {
	call, need := *it.pending, render.NeedOf(it.pending)
	switch {
	case name == "d" && need != render.NeedsResult:
		ask(m, &call, v1beta1.DecisionDeny)
	case name == "a" && need != render.NeedsApproval, name == "r" && need != render.NeedsInput,
		need == render.NeedsResult:
		say(m, hints[need])
	case !m.pane.wasRead(it):
		say(m, "[read the call to its end first: PgDn scrolls; kubectl chat approve shows it, too]")
	case name == "a":
		ask(m, &call, v1beta1.DecisionApprove)
	default:
		return m.aim(target{call: &call})
	}
	return nil
}

// decide decides about a call. An input that is refused returns to the line, as the answer to that call.
func (m *model) decide(call v1beta1.PendingToolCall, decision v1beta1.ApprovalDecision, input string) tea.Cmd {
	return m.requests.add(func() outcome {
		words := "[call " + call.ID + " (" + call.Name + ") was " + render.Decided[decision] + "]"
		return outcome{words: []string{words},
			err: m.actions.Decide(m.ctx, call, decision, input), text: input,
			target: target{call: &call, denies: decision == v1beta1.DecisionDeny}}
	})
}
