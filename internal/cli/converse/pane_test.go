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

// Security (a hostile model): cannot have a call approved by a key that was pressed for another call.
func TestCallIsApprovedOnlyAfterItWasPainted(t *testing.T) {
	s := newScreen(t)
	now := time.Now()
	s.pane.now = func() time.Time { return now }
	s.takes(waits(v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval, Input: "ls"}))
	now = now.Add(ReadTime)
	s.takes(waits(v1beta1.PendingToolCall{ID: "c2", Name: "execute", Kind: v1beta1.RequiresApproval, Input: "rm"}))
	s.press(tab, keyA, keyY, esc, tab)
	check.Equal(t, "asked at once", 0, len(s.does.asked))
	now = now.Add(ReadTime)
	s.press(keyA, keyY)
	check.Equal(t, "asked before the question was read", 0, len(s.does.asked))
	now = now.Add(ReadTime)
	s.press(keyY)
	check.Equal(t, "asked", 1, len(s.does.asked))
}

func TestPagesAreReadWhenAKeyLeavesThem(t *testing.T) {
	long := v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval,
		Input: `{"command":"` + strings.Repeat(`true\n`, 30) + `"}`}
	wheel := tea.MouseWheelMsg{Button: tea.MouseWheelDown}
	for name, do := range map[string]func(*screen){
		"keys": func(s *screen) { s.press(pageDown, pageDown, pageDown) },
		"wheel": func(s *screen) {
			for range 20 {
				s.Update(wheel)
			}
		},
	} {
		s := newScreen(t)
		s.takes(waits(long))
		s.press(tab)
		do(s)
		s.press(keyA, keyY)
		check.Equal(t, name, 1, len(s.does.asked))
	}
	s := newScreen(t)
	s.takes(waits(long))
	s.press(tab)
	for range 20 {
		s.pane.scroll(3)
		s.layout()
	}
	s.press(keyA, keyY)
	check.Equal(t, "asked without a key between the pages", 0, len(s.does.asked))
}
