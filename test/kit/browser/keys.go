// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// keys are those that need more than their character.
var keys = map[string]struct {
	text string
	code int64
}{
	"Enter": {"\r", 13}, "Escape": {"", 27}, "Tab": {"", 9}, "Space": {" ", 32},
	"ArrowDown": {"", 40}, "ArrowUp": {"", 38}, "End": {"", 35},
}

// modifiers are those of the protocol of Chromium's tools.
var modifiers = map[string]int64{"Alt": 1, "Control": 2, "Shift": 8}

// Key presses a key where the focus is: a character, or a name such as Enter, with what is held meanwhile before it,
// as in Control+Enter.
func (p *Page) Key(key string) {
	p.t.Helper()
	params := input.DispatchKeyEventParams{}
	if held, pressed, ok := strings.Cut(key, "+"); ok && modifiers[held] != 0 {
		params.Modifiers, key = modifiers[held], pressed
	}
	known, ok := keys[key]
	if !ok {
		known.text = key
	}
	params.Key, params.WindowsVirtualKeyCode = key, known.code
	if key == "Space" {
		params.Key = " "
	}
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown,
		input.DispatchKeyEventTypeKeyUp} {
		params.Type, params.Text = kind, ""
		if kind == input.DispatchKeyEventTypeKeyDown {
			params.Text = known.text
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, params); err != nil {
			p.t.Fatalf("pressing %s: %v", key, err)
		}
	}
}

// Write types a text where the focus is.
func (p *Page) Write(text string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		p.t.Fatalf("typing: %v", err)
	}
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
