// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"strings"
)

// modifiers are those of the protocol of Chromium's tools.
var modifiers = map[string]int64{"Alt": 1, "Control": 2, "Shift": 8}

// Key presses a key where the focus is: a character, or a name such as Enter, with what is held meanwhile before it,
// as in Control+Enter.
func (p *Page) Key(key string) {
	p.t.Helper()
	held, pressed, ok := strings.Cut(key, "+")
	if !ok || modifiers[held] == 0 {
		held, pressed = "", key
	}
	p.within(func(ctx context.Context) error { return p.tab.press(ctx, held, pressed) })
}

// Write types a text where the focus is.
func (p *Page) Write(text string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.tab.insert(ctx, text) })
}

// Focused is the element that has the focus, as people know it: what it is, and what it shows or is called.
func (p *Page) Focused() string {
	p.t.Helper()
	return Eval[string](p, `(() => { const e = document.activeElement;
		return [e.localName, e.id && '#' + e.id, e.getAttribute('aria-label') || e.innerText?.slice(0, 60) || '']
			.join(' '); })()`)
}

// mostTabs is how often Tab is pressed before a place is taken to be out of reach.
const mostTabs = 120

// TabTo presses Tab, or Shift+Tab, until the focus is on an element that a selector matches and that shows the words,
// or has them as its name. On its way the focus may never be lost, nor be where nobody sees it.
func (p *Page) TabTo(key, selector, words string) {
	p.t.Helper()
	there := fmt.Sprintf(`(() => { const e = document.activeElement;
		return e.matches(%s) && [e.innerText, e.getAttribute('aria-label'), e.value].some((t) => t?.includes(%s)); })()`,
		jsonString(selector), jsonString(words))
	var way []string
	for range mostTabs {
		p.Key(key)
		if seen := Eval[bool](p, seenFocus); !seen {
			p.t.Errorf("the focus cannot be seen at %s", p.Focused())
		}
		if Eval[bool](p, there) {
			return
		}
		way = append(way, p.Focused())
	}
	p.t.Fatalf("%s does not lead to %s with %q but to:\n%s", key, selector, words, strings.Join(way, "\n"))
}

// seenFocus tells whether the element in focus, or the label that stands for it, is in view and marked. The page itself
// has the focus where it goes around.
const seenFocus = `(() => { const e = document.activeElement;
	if (e === document.body) return true;
	const shown = [e, e.closest('label')].filter(Boolean);
	const marked = shown.some((s) => getComputedStyle(s).outlineStyle !== 'none');
	const box = shown.at(-1).getBoundingClientRect();
	return marked && box.width > 0 && box.bottom > 0 && box.top < innerHeight; })()`
