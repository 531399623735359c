// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	xansi "github.com/charmbracelet/x/ansi"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// Security (a hostile model): cannot have a call approved in a terminal that shows only a part of it.
func TestApprovalNeedsTheWholeCallRead(t *testing.T) {
	s := newScreen(t)
	call := v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval,
		Input: `{"command":"` + strings.Repeat(`true\n`, 60) + `rm x"}`}
	s.takes(waits(call))
	call.Digest = call.CallDigest()
	s.types("ad")
	check.Equal(t, "asked while typing", 0, len(s.does.asked))
	s.press(tab, enter, keyA)
	s.shows("▎  c1 (execute):", "read the call to its end first")
	s.press(pageDown, keyA)
	check.Equal(t, "asked before the end", 0, len(s.does.asked))
	s.press(pageDown, pageDown, pageDown, keyA, keyY)
	s.shows(`rm x"`, "▎[call c1 (execute) was approved]")
	check.Equal(t, "asked", "Approve "+call.Digest+" ", strings.Join(s.does.asked, ","))
}

// painted is what bubbletea paints in a terminal that adds up the widths of characters, as most do.
func (s *screen) painted() string {
	lines := strings.Split(s.View().Content, "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(xansi.HardwrapWc(lines[i], s.width, true), "\n")
	}
	return strings.Join(lines, "\n")
}

// Security (a hostile model): cannot push a part of a call beyond the edge of the terminal, and have it approved.
func TestCallIsPaintedWholeOrNotApproved(t *testing.T) {
	for name, filler := range map[string]string{
		"joined": "👩" + strings.Repeat("\u200d👩", 60), "tones": strings.Repeat("👍🏽", 60),
		"variants": strings.Repeat("❤\ufe0f", 90), "conjuncts": strings.Repeat("स्ते", 90),
	} {
		for _, width := range []int{6, 80} {
			s := newScreen(t)
			s.Update(tea.WindowSizeMsg{Width: width, Height: 400})
			s.takes(waits(v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval,
				Input: `{"command":"` + filler + `; rm"}`}))
			s.press(tab)
			seen := strings.Contains(s.painted(), "rm")
			s.press(keyA, keyY)
			if approved := len(s.does.asked) > 0; approved && !seen || !approved && width == 80 {
				t.Errorf("%s at width %d: rm is on the screen: %v, approved: %v", name, width, seen, approved)
			}
		}
	}
}

func TestChangedOrResizedCallIsReadAgain(t *testing.T) {
	long := `{"command":"` + strings.Repeat(`true\n`, 60) + `"}`
	change := map[string]func(*screen){
		"another input": func(s *screen) {
			s.takes(waits(v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval, Input: long + " "}))
			s.press(tab)
		},
		"another width": func(s *screen) { s.Update(tea.WindowSizeMsg{Width: 30, Height: 24}) },
	}
	for name, do := range change {
		s := newScreen(t)
		s.takes(waits(v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval, Input: long}))
		s.press(tab, pageDown, pageDown, pageDown, pageDown)
		do(s)
		s.press(keyA, keyY)
		check.Equal(t, name, 0, len(s.does.asked))
	}
}

func TestInputAnswersACallAndReturnsWhenRefused(t *testing.T) {
	s := newScreen(t)
	call := v1beta1.PendingToolCall{ID: "c1", Name: "ask", Kind: v1beta1.RequiresApproval,
		ApprovalCause: v1beta1.ApprovalInputRequired, InputRequests: `{"q":{"params":{"message":"Your name?"}}}`}
	s.takes(waits(call))
	call.Digest = call.CallDigest()
	s.shows("Your name?", "[asks for input: Tab, then r answers, d denies]")
	s.press(tab)
	s.shows("[asks for input: r answers, d denies]")
	s.press(esc)
	s.types("a draft")
	s.press(tab, keyA, keyR)
	s.does.err = errors.New("no object")
	s.types("x")
	s.press(enter)
	s.shows("▎kubectl chat: no object; r at the call shows what you wrote", "▎> a draft")
	s.does.err = nil
	s.press(tab, keyR)
	s.shows("▎> x", "Enter answers call c1")
	s.press(enter, tab, keyD, keyY)
	check.Equal(t, "asked", strings.Join([]string{"Approve " + call.Digest + " x", "Approve " + call.Digest + " x",
		"Deny " + call.Digest + " "}, ","), strings.Join(s.does.asked, ","))
}
