// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import "parley.dev/parley/internal/cli/terminal"

// Listed is a chat that a person can switch to, with a line about it.
type Listed struct{ Name, Line string }

// chatList is the list of chats, which is shown in place of the conversation while it is open.
type chatList struct {
	pane

	open bool
}

// show opens the list, with the chat of that name selected.
func (l *chatList) show(chats []Listed, current string) {
	l.items, l.open, l.scrolled = nil, true, false
	for _, c := range chats {
		l.items = append(l.items, &item{key: c.Name, own: []string{terminal.Mark + terminal.EscapeLine(c.Line)}})
	}
	l.selected = current
	if i := l.indexOf(current); i >= 0 {
		l.selectItem(i)
	}
}

// press handles a key. It returns the name of the chat that was chosen.
func (l *chatList) press(name string) (chosen string) {
	switch name {
	case "up", "k":
		l.move(-1)
	case "down", "j":
		l.move(1)
	case "enter":
		l.open = false
		return l.selected
	case "esc", "ctrl+l":
		l.open = false
	}
	return ""
}
