// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// maxLine is how many runes of a line are looked at: what is not printable is left out of what is shown.
const maxLine = 4 * v1alpha1.MaxLastReplyRunes

// preview keeps the first line of a text that has one, cut to what a column shows,
// and without what terminals would act on.
type preview struct {
	runes []rune
	done  bool
}

func (p *preview) add(text string) {
	for _, c := range text {
		switch {
		case p.done:
			return
		case strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", c):
			if p.done = p.line() != ""; !p.done {
				p.runes = p.runes[:0]
			}
		case len(p.runes) == 0 && c == ' ':
		default:
			p.runes = append(p.runes, c)
			p.done = len(p.runes) > maxLine
		}
	}
}

func (p *preview) line() string { return printable.Line(string(p.runes)) }

// String is the preview, with an ellipsis if the line goes on.
func (p *preview) String() string { return clip.Ellipsis(p.line(), v1alpha1.MaxLastReplyRunes) }
