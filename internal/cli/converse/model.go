// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// model is what the screen shows.
type model struct {
	ctx      context.Context //nolint:containedctx // Commands of bubbletea have no other.
	actions  Chat
	name     string
	arrivals <-chan arrival

	transcript transcript
	// items are those of the transcript since the last event.
	items    []*item
	pane     pane
	composer composer
	requests requests
	list     chatList
	turn     turn
	// browsing is true while keys are for the items.
	browsing bool
	// question is what a key has to be confirmed for; nil if nothing is asked.
	question *confirmation

	// warned is the key that was pressed once and acts when it is pressed again.
	warned string
	// notice holds lines about what became of the last key, and lost why the chat is out of reach.
	notice []string
	lost   error
	// leaving is true once the program ends with the last request.
	leaving bool
	// ended is why there are no more events, and next the chat that the person wants to see next.
	ended error
	next  string

	width, height int
	screen        []string
}

func newModel(ctx context.Context, actions Chat, name string) *model {
	m := &model{ctx: ctx, actions: actions, name: name, pane: newPane(), list: chatList{pane: newPane()},
		composer: newComposer(), turn: turn{withdrawn: map[string]bool{}}, width: 80, height: 24}
	m.layout()
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return listen(m.ctx, m.arrivals) }

// listen waits for what arrives, and takes all that has.
func listen(ctx context.Context, arrivals <-chan arrival) tea.Cmd {
	return func() tea.Msg {
		var batch []arrival
		select {
		case a := <-arrivals:
			batch = append(batch, a)
		case <-ctx.Done():
			return nil
		}
		for len(batch) < cap(arrivals) {
			select {
			case a := <-arrivals:
				batch = append(batch, a)
			default:
				return batch
			}
		}
		return batch
	}
}

// outcome is what became of a request.
type outcome struct {
	// words describe what was done, and err why it was not.
	words []string
	err   error
	// text returns to the input after an error, for what it was. name is that of its message.
	name, text string
	target     target
	interrupts bool
	// sent is true for a message that was created, and may still be refused.
	sent bool
	// request is true for a request that leaving waits for, and inOrder for one that others wait for.
	request, inOrder bool
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case []arrival:
		cmd = m.arrive(msg)
	case outcome:
		cmd = m.finish(msg)
	case []v1beta1.ChatMessage:
		cmd = showOpen(m, msg)
	case *v1beta1.ChatMessage:
		cmd = m.showQueued(msg)
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case []Listed:
		m.list.show(msg, m.name)
	default:
		cmd = act(m, msg)
	}
	m.layout()
	return m, cmd
}

// act does what a person asks for.
func act(m *model, msg tea.Msg) (cmd tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		m.pane.noteRead()
		cmd = m.press(msg)
	case tea.MouseWheelMsg:
		m.pane.noteRead()
		m.shownPane().wheel(msg.Button)
	case tea.PasteMsg:
		if !m.list.open && !m.leaving {
			endSelection(m)
			if notice := m.composer.paste(msg.Content); notice != "" {
				say(m, notice)
			}
		}
	default:
		if !m.browsing {
			m.composer.input, cmd = m.composer.input.Update(msg)
		}
	}
	return cmd
}

// arrive takes events. It leaves behind the last one.
func (m *model) arrive(batch []arrival) tea.Cmd {
	before := m.turn.stopped
	for _, a := range batch {
		m.lost = a.lost
		if a.lost != nil {
			continue
		}
		if m.ended = a.err; m.ended == nil {
			m.ended = m.event(a.event)
		}
		if m.ended != nil {
			return m.leave()
		}
	}
	m.items = m.transcript.items()
	if !before && m.turn.stopped {
		return tea.Batch(readOpen(m.ctx, m.actions), listen(m.ctx, m.arrivals))
	}
	return listen(m.ctx, m.arrivals)
}

func (m *model) event(e stream.Event) error {
	updates, err := m.transcript.chat.Updates(e)
	before := m.turn
	for _, u := range updates {
		m.turn.observe(u)
		if reset, ok := u.(*client.Reset); ok {
			say(m, "["+render.ResetWords(reset)+"]")
		}
		m.transcript.take(u)
	}
	if !before.busy() && m.turn.busy() || m.turn.isOver(before) {
		m.warned = "" // The key was pressed for another turn, or for none.
	}
	if err == nil && e.Name == stream.EventDeleted {
		err = cli.NotFoundError("the chat was deleted")
	}
	return err
}

// finish shows what became of a request.
func (m *model) finish(o outcome) (next tea.Cmd) {
	next = m.requests.finish(o)
	if o.err != nil && o.target.queued != nil {
		delete(m.turn.withdrawn, o.target.queued.Name) // It is still there.
	}
	if !m.turn.withdrawn[o.name] {
		m.showOutcome(o)
	}
	switch {
	case m.leaving && m.requests.open == 0:
		return tea.Quit
	case o.sent:
		return tea.Batch(next, await(m.ctx, m.actions, o.name, o.text))
	}
	return next
}

// showOutcome shows what became of a request. A person stays where a text returns to the input.
func (m *model) showOutcome(o outcome) {
	if o.err == nil {
		say(m, o.words...)
		return
	}
	if m.leaving && m.ended == nil && !o.interrupts {
		m.leaving, m.next = false, ""
		m.setTarget(m.composer.target)
	}
	m.turn.forget(o.name)
	words := fmt.Sprintf("kubectl chat: %v", o.err)
	switch {
	case o.text == "":
	case m.composer.input.Value() == "" && m.composer.target == target{}:
		m.composer.input.SetValue(o.text)
		m.setTarget(o.target)
	case m.leaving:
		m.composer.drafts[cmp.Or(o.target.key(), o.name)] = o.text
	case o.target.call != nil:
		m.composer.drafts[o.target.key()] = o.text
		words += "; r at the call shows what you wrote"
	default:
		words += "; arrow up shows what you wrote"
	}
	say(m, words)
}

// shownPane is the list of chats while that is open, else the conversation.
func (m *model) shownPane() *pane {
	if m.list.open {
		return &m.list.pane
	}
	return &m.pane
}

// layout computes the screen. Only it renders items.
func (m *model) layout() {
	m.composer.input.SetWidth(m.width)
	m.pane.items, m.pane.selecting = append(slices.Clip(m.items), m.turn.echo()...), m.browsing
	height := 1
	if typing(m) {
		height = m.composer.input.Height()
	}
	notice := noticeLines(m.notice, m.width)
	if len(notice) > m.height/3 && !m.pane.scrolled { // It scrolls with the conversation.
		m.pane.items, notice = append(m.pane.items, &item{own: marked(m.notice)}), nil
	}
	notice = notice[:min(len(notice), m.height/3)]
	for _, p := range []*pane{&m.pane, &m.list.pane} {
		p.resize(m.width, m.height-height-2-len(notice))
	}
	m.screen = append(m.shownPane().window(), notice...)
	m.screen = append(m.screen, statusLine(m), faintStyle.Render(clip(keysLine(m), m.width)))
}

// say shows lines about what became of the last key, if there are any.
func say(m *model, lines ...string) {
	if len(lines) > 0 {
		m.notice = lines
	}
}

// marked returns lines as the plug-in prints them.
func marked(notice []string) (lines []string) {
	for _, line := range notice {
		lines = append(lines, terminal.Mark+terminal.EscapeLine(line))
	}
	return lines
}

func noticeLines(notice []string, width int) (lines []string) {
	for _, line := range marked(notice) {
		lines = append(lines, own(line, width, wrap)...)
	}
	return lines
}

// waitsForPerson says what a person has to do, where that is possible on this screen; else nothing.
func waitsForPerson(a *stream.RequiresAction) string {
	var waits []string
	if a != nil {
		for i := range a.ToolCalls {
			switch call := &a.ToolCalls[i]; render.NeedOf(call) {
			case render.NeedsApproval:
				waits = append(waits, call.Name+" waits for your decision")
			case render.NeedsInput:
				waits = append(waits, call.Name+" waits for your answer")
			}
		}
	}
	if len(waits) > 1 {
		return fmt.Sprintf("%d calls wait for you", len(waits))
	}
	return strings.Join(waits, "")
}

// statusLine says what the chat waits for, with its model and cost.
func statusLine(m *model) string {
	left := "connecting"
	var facts []string
	if now := m.transcript.chat.Status; now != nil {
		left = cmp.Or(waitsForPerson(m.transcript.chat.Action), render.StatusLine(now))
		facts = append(facts, now.Model)
		if now.Mode != "" {
			facts = append(facts, "mode "+string(now.Mode))
		}
	}
	if m.lost != nil {
		left = m.lost.Error()
	}
	facts = append(facts, render.CostLine(m.transcript.costs))
	right := strings.Join(slices.DeleteFunc(facts, func(fact string) bool { return fact == "" }), " · ")
	left = strings.TrimSuffix(left, ": see status.requiresAction")
	right = clip(" "+terminal.EscapeLine(right), m.width/2)
	left = clip(terminal.Mark+terminal.EscapeLine(m.name+": "+left), m.width-lipgloss.Width(right))
	space := strings.Repeat(" ", max(0, m.width-lipgloss.Width(left)-lipgloss.Width(right)))
	return ownStyle.Render(left + space + right)
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen, "\n") + "\n" + inputView(m))
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	if c := m.composer.input.Cursor(); c != nil && typing(m) {
		c.Y += len(m.screen)
		v.Cursor = c
	}
	return v
}
