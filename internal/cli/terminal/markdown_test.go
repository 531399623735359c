// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// tagged writes styles as tags.
var tagged = strings.NewReplacer(BoldStyle, "<b>", codeStyle, "<code>", NoStyle, "</>")

func TestMarkdownIsStyledAndOtherwiseAsItIs(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain words":              {"2 * 3 is `", "2 * 3 is <code>`</>"},
		"a heading":                {"## So\nbe it", "<b>## So</>\nbe it"},
		"a hash within a line":     {"issue #1", "issue #1"},
		"seven hashes":             {"####### no", "<b>#######</> no"},
		"something strong":         {"so **be** it", "so **<b>be**</> it"},
		"a strong word never ends": {"so **be\nit", "so **<b>be</>\nit"},
		"a list with stars":        {"* so\n* be", "* so\n* be"},
		"code":                     {"say `a ** b` so", "say <code>`a ** b`</> so"},
		"a block of code": {"```go\n# a **b**\n```\nso",
			"<code>```go</>\n<code># a **b**</>\n<code>```</>\nso"},
		"a fence within a line": {"so ``` be", "so <code>``` be</>"},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "styled", c.want, tagged.Replace((&Markdown{begins: true}).add(c.text)))
		})
	}
}

func FuzzStylesLeaveTheTextAsItIs(f *testing.F) {
	f.Add("# a `b` **c**\n```\nd", 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x1b", ""), "")
		runes := []rune(text)
		cut = max(0, min(cut, len(runes)))
		var whole, pieces Markdown
		plain := strings.NewReplacer(BoldStyle, "", codeStyle, "", NoStyle, "")
		check.Equal(t, text, text, plain.Replace(whole.add(text)))
		if got := plain.Replace(pieces.add(string(runes[:cut])) + pieces.add(string(runes[cut:]))); got != text ||
			pieces != whole {
			t.Errorf("in pieces it says %q instead of %q, and goes on in another way", got, text)
		}
	})
}
