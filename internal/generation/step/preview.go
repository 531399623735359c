// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// preview keeps the first line of a text that has one, cut to what a column shows.
type preview struct {
	runes []rune
	done  bool
}

func (p *preview) add(text string) {
	for _, c := range text {
		switch {
		case p.done:
			return
		case c == '\n' || c == '\r':
			p.done = len(strings.TrimSpace(string(p.runes))) > 0
		case len(p.runes) == 0 && c == ' ':
		default:
			p.runes = append(p.runes, c)
			p.done = len(p.runes) > v1alpha1.MaxLastReplyRunes
		}
	}
}

// String is the preview, with an ellipsis if the line goes on.
func (p *preview) String() string {
	if len(p.runes) > v1alpha1.MaxLastReplyRunes {
		return string(p.runes[:v1alpha1.MaxLastReplyRunes-1]) + "…"
	}
	return strings.TrimSpace(string(p.runes))
}
