// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import "charm.land/bubbles/v2/textarea"

// history holds the texts that were sent, and what is typed below them.
type history struct {
	texts []string
	draft string
	// back is how many texts above the draft the input shows.
	back int
}

func (h *history) add(text string) { h.texts, h.draft, h.back = append(h.texts, text), "", 0 }

// move shows the text before or behind the one that the input shows. It reports whether there is one.
func (h *history) move(input *textarea.Model, by int) bool {
	back := h.back - by
	if back < 0 || back > len(h.texts) {
		return false
	}
	if h.back == 0 {
		h.draft = input.Value()
	}
	h.back = back
	text := h.draft
	if back > 0 {
		text = h.texts[len(h.texts)-back]
	}
	input.SetValue(text)
	return true
}
