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
	"charm.land/lipgloss/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// maxInput is the most lines of the input that are shown, and maxLines the most that it has.
const maxInput, maxLines = 6, 10000

// model is what the screen shows.
type model struct {
	ctx      context.Context //nolint:containedctx // Commands of bubbletea have no other.
	actions  Chat
	name     string
	arrivals <-chan arrival

	transcript transcript
	pane       pane
	input      textarea.Model
	history    history
	// browsing is true while keys are for the items, and answering is the call that the input answers.
	browsing  bool
	answering *v1beta1.PendingToolCall

	// sent is the last message until the chat has committed or queued it, and working is true while the status has a turn
	// under way.
	sent, sentText string
	working        bool
	// warned is the key that was pressed once and acts when it is pressed again.
	warned string
	// notice is what became of the last key, and lost why the chat is out of reach.
	notice string
	lost   error
	// interrupting is true until the request to interrupt is made; leaving waits for it.
	interrupting, leaving bool
	// ended is why there are no more events.
	ended error

	width, height int
	screen        []string
}

func newModel(ctx context.Context, actions Chat, name string) *model {
	m := &model{ctx: ctx, actions: actions, name: name, pane: newPane(), input: textarea.New(), width: 80, height: 24}
	m.input.Prompt = terminal.Mark + "> "
	m.input.ShowLineNumbers = false
	m.input.DynamicHeight, m.input.MaxHeight, m.input.MaxContentHeight = true, maxInput, maxLines
	m.input.CharLimit = v1beta1.MaxContentBytes
	m.input.SetStyles(textarea.Styles{})
	m.input.SetVirtualCursor(false)
	m.input.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	m.input.Focus()
	m.layout()
	return m
}

// busy reports whether there is something to interrupt.
func (m *model) busy() bool { return m.working || m.sent != "" }

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.listen }

// listen waits for what arrives, and takes all that has.
func (m *model) listen() tea.Msg {
	var batch []arrival
	select {
	case a := <-m.arrivals:
		batch = append(batch, a)
	case <-m.ctx.Done():
		return nil
	}
	for len(batch) < cap(m.arrivals) {
		select {
		case a := <-m.arrivals:
			batch = append(batch, a)
		default:
			return batch
		}
	}
	return batch
}

// outcome is what became of a request.
type outcome struct {
	// words describe what was done, and err why it was not.
	words string
	err   error
	// text returns to the input after an error: that of a message of the name, or the answer to a call.
	name, text string
	call       *v1beta1.PendingToolCall
	interrupts bool
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case []arrival:
		cmd = m.arrive(msg)
	case outcome:
		cmd = m.finish(msg)
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd = m.press(msg)
	case tea.MouseWheelMsg:
		m.wheel(msg.Button)
	default:
		if !m.browsing {
			m.input, cmd = m.input.Update(msg)
		}
	}
	m.layout()
	return m, cmd
}

func (m *model) wheel(button tea.MouseButton) {
	switch button {
	case tea.MouseWheelUp:
		m.pane.scroll(-3)
	case tea.MouseWheelDown:
		m.pane.scroll(3)
	}
}

// arrive takes events. It leaves behind the last one.
func (m *model) arrive(batch []arrival) tea.Cmd {
	for _, a := range batch {
		m.lost = a.lost
		if a.lost != nil {
			continue
		}
		if m.ended = a.err; m.ended == nil {
			m.ended = m.event(a.event)
		}
		if m.ended != nil {
			return tea.Quit
		}
	}
	return m.listen
}

func (m *model) event(e stream.Event) error {
	updates, err := m.transcript.chat.Updates(e)
	for _, u := range updates {
		m.observe(u)
		m.transcript.take(u)
	}
	if err == nil && e.Name == stream.EventDeleted {
		err = cli.NotFoundError("the chat was deleted")
	}
	return err
}

// observe updates whether there is something to interrupt.
func (m *model) observe(u client.Update) {
	switch u := u.(type) {
	case *stream.MessageCommitted:
		if m.sent == u.Message.Name { // The status follows.
			m.sent, m.working = "", true
		}
	case *stream.QueueUpdate:
		for _, waits := range u.Queue {
			if m.sent == waits.Name {
				m.sent = ""
			}
		}
	case *stream.Status:
		m.working = u.Ready == metav1.ConditionUnknown
	}
}

// finish shows what became of a request.
func (m *model) finish(o outcome) tea.Cmd {
	if o.interrupts {
		m.interrupting = false
		if m.leaving {
			return tea.Quit
		}
	}
	if o.err == nil {
		m.notice = o.words
		return nil
	}
	if m.sent == o.name {
		m.sent = ""
	}
	m.notice = fmt.Sprintf("kubectl chat: %v", o.err)
	switch {
	case o.text == "":
	case m.input.Value() == "":
		m.input.SetValue(o.text)
		m.answering = o.call
	default:
		m.notice += "; arrow up shows what you wrote"
	}
	return nil
}

// layout computes the screen. Only it renders items.
func (m *model) layout() {
	m.input.SetWidth(m.width)
	m.pane.items = m.transcript.items()
	if m.sent != "" {
		echo := strings.Split(terminal.Unmarked(printable.Escape(m.sentText)), "\n")
		for i, line := range echo {
			echo[i] = terminal.Mark + "> " + line
		}
		m.pane.items = append(m.pane.items, &item{own: append([]string{""}, echo...)})
	}
	notice := m.noticeLines()
	m.pane.resize(m.width, m.height-m.input.Height()-2-len(notice))
	m.screen = append(m.pane.window(), notice...)
	m.screen = append(m.screen, m.statusLine(), faintStyle.Render(clip(m.keysLine(), m.width)))
}

// noticeLines are at most a third of the screen.
func (m *model) noticeLines() (lines []string) {
	if m.notice != "" {
		lines = own(terminal.Mark+terminal.EscapeLine(m.notice), m.width, wrap)
	}
	return lines[:min(len(lines), m.height/3)]
}

// statusLine says what the chat waits for, with its model and cost.
func (m *model) statusLine() string {
	left, right := "connecting", ""
	if now := m.transcript.chat.Status; now != nil {
		left, right = render.StatusLine(now), now.Model
	}
	if m.lost != nil {
		left = fmt.Sprintf("the gateway is out of reach, and is asked again until it answers: %v", m.lost)
	}
	if costs := render.CostLine(m.transcript.costs); costs != "" {
		right += " · " + costs
	}
	right = clip(" "+terminal.EscapeLine(right), m.width/2)
	left = clip(terminal.Mark+terminal.EscapeLine(m.name+": "+left), m.width-lipgloss.Width(right))
	space := strings.Repeat(" ", max(0, m.width-lipgloss.Width(left)-lipgloss.Width(right)))
	return ownStyle.Render(left + space + right)
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen, "\n") + "\n" + m.input.View())
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	if c := m.input.Cursor(); c != nil && !m.browsing {
		c.Y += len(m.screen)
		v.Cursor = c
	}
	return v
}
