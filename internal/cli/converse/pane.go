// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	xansi "github.com/charmbracelet/x/ansi"

	"parley.dev/parley/internal/cli/render"
)

// pane shows a part of the items. It renders only those that are on the screen.
type pane struct {
	items         []*item
	width, height int
	// top is the index of the first item that is shown, from its line offset on.
	top, offset int
	// scrolled is true while the end is not shown. Otherwise the pane follows the end.
	scrolled bool
	// selected is the key of the selected item, and selecting is true in select mode.
	selected  string
	selecting bool
	// opened holds the keys of the items that are unfolded.
	opened map[string]bool
	// shown holds the lines of pending calls that are on the screen, and read what a person can have read of them.
	shown map[string]span
	read  map[string]reading
	now   func() time.Time
}

// span is a range of lines.
type span struct{ from, to int }

// reading is since when a call is shown, and how many of its lines, from the first, were there when a key was pressed.
type reading struct {
	since time.Time
	lines int
}

// ReadTime is how long a call is shown before a key can approve it. A key that comes sooner is meant for what was there
// before.
const ReadTime = 500 * time.Millisecond

func newPane() pane {
	return pane{width: 80, height: 20, opened: map[string]bool{}, read: map[string]reading{}, now: time.Now}
}

func (p *pane) lines(i int) []string { return p.linesOf(p.items[i]) }

func (p *pane) linesOf(it *item) []string {
	return it.lines(p.width, it.pending != nil && p.selecting || p.opened[it.key])
}

// resize sets the size. A pending call has other lines then.
func (p *pane) resize(width, height int) {
	if width != p.width {
		p.shown, p.read = nil, map[string]reading{}
	}
	p.width, p.height = max(1, width), max(1, height)
}

// wheel scrolls as the wheel of a mouse is turned.
func (p *pane) wheel(button tea.MouseButton) {
	switch button {
	case tea.MouseWheelUp:
		p.scroll(-3)
	case tea.MouseWheelDown:
		p.scroll(3)
	}
}

// end returns where the pane begins if it shows the end.
func (p *pane) end() (top, offset int) {
	left := p.height
	for top = len(p.items) - 1; top >= 0; top-- {
		if left -= len(p.lines(top)); left <= 0 {
			return top, -left
		}
	}
	return 0, 0
}

// scroll moves by lines, down if positive.
func (p *pane) scroll(by int) {
	p.window()
	p.offset += by
	for p.offset < 0 && p.top > 0 {
		p.top--
		p.offset += len(p.lines(p.top))
	}
	p.offset = max(0, p.offset)
	for p.top < len(p.items)-1 && p.offset >= len(p.lines(p.top)) {
		p.offset -= len(p.lines(p.top))
		p.top++
	}
	p.scrolled = true
}

// window returns the lines that are on the screen from now on.
func (p *pane) window() (lines []string) {
	top, offset := p.end()
	if !p.scrolled || p.top > top || p.top == top && p.offset >= offset {
		p.top, p.offset, p.scrolled = top, offset, false
	}
	skip, calls := p.offset, map[string]span{}
	for i := p.top; i < len(p.items) && len(lines) < p.height; i++ {
		all := p.lines(i)
		skip = min(skip, len(all))
		shown := all[skip:min(len(all), skip+p.height-len(lines))]
		if it := p.items[i]; it.pending != nil {
			calls[it.key] = span{skip, skip + len(shown)}
		}
		lines = append(lines, p.marked(i, skip, shown)...)
		skip = 0
	}
	p.show(calls)
	return append(lines, make([]string, p.height-len(lines))...)
}

// show notes the lines of pending calls that are on the screen from now on.
func (p *pane) show(calls map[string]span) {
	p.shown = calls
	for key := range calls {
		if _, known := p.read[key]; !known {
			p.read[key] = reading{since: p.now()}
		}
	}
}

// noteRead counts the lines that are on the screen as read. It is called for what a person does there, because what was
// shown in between may never have been painted.
func (p *pane) noteRead() {
	for key, lines := range p.shown {
		if r := p.read[key]; lines.from <= r.lines {
			r.lines = max(r.lines, lines.to)
			p.read[key] = r
		}
	}
}

// marked returns the lines of an item with the first one reversed, if the item is selected.
func (p *pane) marked(i, skip int, shown []string) []string {
	if it := p.items[i]; skip > 0 || len(shown) == 0 || it.key == "" || it.key != p.selected {
		return shown
	}
	shown = slices.Clone(shown)
	shown[0] = selectedStyle.Render(xansi.Strip(shown[0]))
	return shown
}

// wasRead reports whether a person can have read all lines of a pending call.
func (p *pane) wasRead(it *item) bool {
	lines, r := p.linesOf(it), p.read[it.key]
	return r.lines >= len(lines) && p.now().Sub(r.since) >= ReadTime && fits(lines, p.width)
}

// selection returns the selected item; nil if there is none.
func (p *pane) selection() *item {
	if i := p.indexOf(p.selected); i >= 0 {
		return p.items[i]
	}
	return nil
}

// toggle opens or folds the selected item.
func (p *pane) toggle() {
	if it := p.selection(); it != nil && it.fold != nil {
		p.opened[it.key] = !p.opened[it.key]
	}
}

func (p *pane) indexOf(key string) int {
	return slices.IndexFunc(p.items, func(it *item) bool { return key != "" && it.key == key })
}

// move selects the next item that can be selected in a direction, -1 for up and 1 for down.
func (p *pane) move(direction int) {
	i := p.indexOf(p.selected)
	if i < 0 && direction < 0 {
		i = len(p.items)
	}
	for i += direction; i >= 0 && i < len(p.items); i += direction {
		if p.items[i].key != "" {
			p.selectItem(i)
			return
		}
	}
}

// selectFirst selects the first call that waits for a person, else the last item that can be selected.
func (p *pane) selectFirst() {
	if i := p.firstWaiting(); i >= 0 {
		p.selectItem(i)
		return
	}
	p.selected = ""
	p.move(-1)
}

// firstWaiting returns the index of the first call that waits for a person; -1 if there is none.
func (p *pane) firstWaiting() int {
	return slices.IndexFunc(p.items, func(it *item) bool {
		return it.pending != nil && render.NeedOf(it.pending) != render.NeedsResult
	})
}

// waitingCall returns the index of the waiting call that is selected, or its row in the reply; -1 if there is none.
func (p *pane) waitingCall() int {
	return slices.IndexFunc(p.items, func(it *item) bool {
		return it.pending != nil && (it.key == p.selected || callKey(it.pending.ID) == p.selected)
	})
}

// selectItem selects an item, and scrolls to it unless it is on the screen as a whole.
func (p *pane) selectItem(i int) {
	p.selected = p.items[i].key
	p.window()
	line := -p.offset
	for j := p.top; j < i && line < p.height; j++ {
		line += len(p.lines(j))
	}
	if i < p.top || line < 0 || line+len(p.lines(i)) > p.height {
		p.top, p.offset, p.scrolled = i, 0, true
	}
}
