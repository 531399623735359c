// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// Security (an author of messages): cannot stop the program with Markdown that takes minutes to render.
func TestDeepOrLongMarkdownIsPlainText(t *testing.T) {
	deep := strings.Repeat("- ", 1000) + "*x*"
	for name, text := range map[string]string{
		"lists": deep, "quotes": strings.Repeat(">", 2000) + "*x*", "long": strings.Repeat("a\n\n", maxMarkdown/3) + "*x*",
		"long when escaped": strings.Repeat("\x1b", maxMarkdown/6+1) + "*x*",
	} {
		lines := prose(text, 80)
		check.Equal(t, name, strings.Join(wrap(escape(text), 80), "\n"), strings.Join(lines, "\n"))
	}
	nested := prose("- a\n  - b\n    - c\n      - > *x*", 80)
	check.Equal(t, "nested", false, strings.Contains(strings.Join(nested, "\n"), "*"))
}
