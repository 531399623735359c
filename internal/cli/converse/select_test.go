// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// greets is a call that waits for approval.
func greets() v1beta1.PendingToolCall {
	return v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval,
		Input: `{"command":"sh greet.sh world"}`}
}

func TestSelectModeHasNoPrompt(t *testing.T) {
	s := newScreen(t)
	s.takes(waits(greets()))
	s.types("two")
	s.press(tea.KeyPressMsg{Code: 'j', Mod: tea.ModCtrl})
	s.types("lines")
	for range 2 {
		s.shows("\n▎> two\n▎> lines")
		s.press(tab)
		s.shows("e edits\n▎[select mode: Esc returns to typing; letters are commands]")
		check.Equal(t, "prompts", 0, strings.Count(s.shown(), "▎>"))
		check.Equal(t, "lines", s.height, strings.Count(s.shown(), "\n")+1)
		s.press(esc)
	}
}

func TestTextInSelectModeReachesTheInput(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*screen)
		want string
	}{
		"letters":            {func(s *screen) { s.types("please list the files") }, "a draft: please list the files"},
		"letters of editors": {func(s *screen) { s.types("just is") }, "a draft: just is"},
		"a paste":            {func(s *screen) { s.Update(tea.PasteMsg{Content: "and list"}) }, "a draft: and list"},
		"a paste after a question": {func(s *screen) {
			s.press(keyA)
			s.Update(tea.PasteMsg{Content: "and list"})
		}, "a draft: and list"},
		"a letter after a question": {func(s *screen) { s.types("dx") }, "a draft: x"},
	} {
		s := newScreen(t)
		s.takes(waits(greets()))
		s.types("a draft: ")
		s.press(tab)
		c.do(s)
		s.shows("\n▎> "+c.want, "Enter sends")
		check.Equal(t, name, c.want, s.composer.input.Value())
		check.Equal(t, name+": asked", 0, len(s.does.asked))
	}
}

// Security (a hostile model): cannot have a call approved by a letter of a text that a person types.
func TestDecisionIsAskedFor(t *testing.T) {
	hints := map[string]string{"Approve": "y decides, n returns", "Deny": "y decides, r adds a reason, n returns"}
	for key, decision := range map[tea.KeyPressMsg]string{keyA: "Approve", keyD: "Deny"} {
		for _, no := range []tea.KeyPressMsg{keyN, esc, down} {
			s := newScreen(t)
			s.takes(waits(greets()))
			s.press(tab, key)
			s.shows(hints[decision] + "\n▎" + decision + " call c1 ($ sh greet.sh world)? y/n")
			s.press(no)
			s.shows("select mode")
			check.Equal(t, "asked", 0, len(s.does.asked))
			s.press(key, keyY)
			s.shows("▎[call c1 (execute) was ")
			check.Equal(t, "asked", []string{decision + " " + greetsDigest() + " "}, s.does.asked)
		}
	}
}

func TestAnEarlyKeyDecidesNothingAndSaysSo(t *testing.T) {
	s := newScreen(t)
	s.takes(waits(greets()))
	s.press(tab)
	now := time.Now()
	s.pane.now = func() time.Time { return now }
	for _, key := range []tea.KeyPressMsg{keyY, keyR} {
		s.press(keyD, key)
		s.shows("that key came too early to be meant; y decides, r adds a reason, n returns\n▎Deny call c1")
		check.Equal(t, "asked", 0, len(s.does.asked))
		s.press(keyN)
	}
}

func TestDenialTakesAReason(t *testing.T) {
	s := newScreen(t)
	s.takes(waits(greets()))
	s.press(tab, keyD)
	s.shows("y decides, r adds a reason, n returns")
	s.press(keyR)
	s.types("not in the freeze")
	s.shows("Enter denies call c1 for this reason, Esc returns\n▎> not in the freeze")
	check.Equal(t, "asked before Enter", 0, len(s.does.asked))
	s.press(enter)
	s.shows("▎[call c1 (execute) was denied]")
	check.Equal(t, "asked", []string{"Deny " + greetsDigest() + " not in the freeze"}, s.does.asked)
}

func greetsDigest() string {
	call := greets()
	return call.CallDigest()
}

func TestCallIsDecidedAtItsOwnRow(t *testing.T) {
	s := newScreen(t)
	waiting, other := greets(), greets()
	other.ID = "c0"
	var made []v1beta1.MessagePart
	for _, call := range []v1beta1.PendingToolCall{other, waiting} {
		made = append(made, v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: call.ID,
			Name: call.Name, Input: call.Input}})
	}
	s.takes(question(0, "greet"), reply(1, made...), waits(waiting))
	s.press(tab, up, keyA)
	s.shows("▎Approve call c1 ($ sh greet.sh world)? y/n")
	s.press(keyN, tab, up, keyR)
	s.shows("▎[needs approval: a approves, d denies]\n▎triage")
	s.press(up, up, keyD)
	s.shows("▎[the selected line waits for no decision: select a call that waits]", "select mode")
	check.Equal(t, "asked", 0, len(s.does.asked))
}

func TestLettersWithoutUseAreText(t *testing.T) {
	for _, text := range []string{"and", "do", "read", "explain"} {
		s := newScreen(t)
		s.takes(question(0, "why?"), reply(1, words("So.")))
		s.press(tab)
		s.types(text)
		check.Equal(t, "input", text, s.composer.input.Value())
	}
}

// Security (a hostile model): cannot have a call approved at a row that looks like it.
func TestCallIsReadBeforeItsRowDecides(t *testing.T) {
	s := newScreen(t)
	call := greets()
	call.Input = `{"command":"` + strings.Repeat(`true\n`, 60) + `"}`
	s.takes(question(0, "greet"), reply(1, v1beta1.MessagePart{Type: v1beta1.PartToolCall,
		ToolCall: &v1beta1.ToolCall{ID: "c1", Name: "execute", Input: call.Input}}), waits(call))
	s.press(tab, up, keyA, keyY)
	check.Equal(t, "asked", 0, len(s.does.asked))
	s.press(esc, tab, up, keyA)
	s.shows("▎  c1 (execute):", "▎[read the call to its end first")
}

func TestKeyLineDropsTheLeastImportantFirst(t *testing.T) {
	for width, want := range map[int]string{
		80: "\nEnter sends, Tab selects, PgUp scrolls, Esc-Esc interrupts, /help, ctrl-D leaves\n",
		79: "\nEnter sends, Tab selects, Esc-Esc interrupts, /help, ctrl-D leaves\n",
		60: "\nEnter sends, Tab selects, /help, ctrl-D leaves\n",
		30: "\nEnter sends, ctrl-D leaves\n",
		20: "\nEnter sends, ctrl-D…\n",
	} {
		s := newScreen(t)
		s.Update(tea.WindowSizeMsg{Width: width, Height: 24})
		s.shows(want)
	}
	s := newScreen(t)
	s.Update(tea.WindowSizeMsg{Width: 60, Height: 24})
	s.press(tab)
	s.shows("\nUp, Down select, Enter opens, a approves, d denies\n")
}

// Security (a hostile model): cannot control a terminal or imitate its lines in the text of an opened call.
func TestOpenedCallShowsItsTextsInLines(t *testing.T) {
	s := newScreen(t)
	input := `{"script":"cd x\n\u001b[2J\r\n▎[approved]\n\n\tend \"\\\\\n",` +
		`"also":["1\n2","3"],"in":{"a\"b":"c"},"dir":"/\\t"}`
	s.takes(question(0, "build"), reply(1, v1beta1.MessagePart{Type: v1beta1.PartToolCall,
		ToolCall: &v1beta1.ToolCall{ID: "c1", Name: "run", Input: input}}))
	s.press(tab, enter)
	s.shows(strings.Join([]string{"▎| {", `▎|   "script":`, `▎|       cd x`, `▎|       \u001b[2J`,
		`▎|       \u258e[approved]`, `▎|`, `▎|           end "\\`, `▎|   "also": [`, `▎|     -`, `▎|         1`, `▎|         2`,
		`▎|     "3"`, `▎|   ],`, `▎|   "in": {`, `▎|     "a\"b": "c"`, `▎|   },`, `▎|   "dir": "/\\t"`, "▎| }"}, "\n"))
}

func TestLongQuestionIsAskedInOneLine(t *testing.T) {
	s := newScreen(t)
	call := greets()
	call.Input = `{"command":"` + strings.Repeat("true; ", 40) + `"}`
	s.takes(waits(call))
	s.press(tab, keyA)
	s.shows("\n▎Approve call c1 ($ true; ", "…)? y/n")
	check.Equal(t, "lines", s.height, strings.Count(s.shown(), "\n")+1)
}
