// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Where a word is looked for.
const (
	inPages    = 1 << iota // Markdown that people write.
	inAPI                  // Comments of the API, which kubectl explain shows.
	inStrings              // Errors, conditions, flags, docs of tools and prompts.
	everywhere = inPages | inAPI | inStrings
)

// unusual are words that Kubernetes engineers neither write nor search for, each with the usual one.
var unusual = []struct {
	where       int
	word, usual string
}{
	{everywhere, `any more`, "no longer"},
	{everywhere, `for want of`, "because there is no"},
	{everywhere, `in vain`, "without success"},
	{everywhere, `nobody`, "no one, or say who"},
	{everywhere, `somebody`, "someone, or say who"},
	{everywhere, `beside`, "next to, in addition to"},
	{everywhere, `as many as may`, "the limit"},
	{everywhere, `lets? in`, "admit, allow"},
	{everywhere, `mend(s|ed|ing)?`, "fix, repair"},
	{everywhere, `put(s|ting)? away`, "archive"},
	{everywhere, `strangers?`, "unknown, other"},
	{everywhere, `anew`, "again"},
	{everywhere, `as far as`, "if, where, up to"},
	{everywhere, `(is|are) due`, "is pending"},
	{everywhere, `of one's own`, "own"},
	{inPages | inAPI, `none the worse`, "not affected"},
	{inPages | inAPI, `besides`, "in addition"},
	{inPages | inAPI, `(go|goes|going|went|gone) on`, "continue"},
	{inPages | inAPI, `heard?s?`, "receive"},
	{inPages, `(take|takes|taken|took|taking) up`, "start"},
	{inPages, `(give|gives|given|gave|giving) up`, "cancel, stop"},
	{inPages, `(leave|leaves|left|leaving) out`, "omit"},
	{inPages, `(is|are|was|were|be|been) told`, "receive, report"},
}

// unusualIn describes the unusual words of a text, each with its line.
func unusualIn(where int, text string) (all []string) {
	for _, at := range expressions[where].FindAllStringIndex(text, -1) {
		line := 1 + strings.Count(text[:at[0]], "\n")
		found := text[at[0]:at[1]]
		all = append(all, fmt.Sprintf("line %d has %q: write %s", line, found, usualFor(found)))
	}
	return all
}

// usualFor is what to write in place of unusual words.
func usualFor(words string) string {
	for _, u := range unusual {
		if expression(u.word).MatchString(words) {
			return u.usual
		}
	}
	return ""
}

// expressions find all unusual words of a place at once: one for each word takes ten times as long.
var expressions = func() map[int]*regexp.Regexp {
	all := map[int]*regexp.Regexp{}
	for _, where := range []int{inPages, inAPI, inStrings} {
		var words []string
		for _, u := range unusual {
			if u.where&where != 0 {
				words = append(words, u.word)
			}
		}
		all[where] = expression(strings.Join(words, "|"))
	}
	return all
}()

// expression finds the words, also where a line ends within them.
func expression(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(words, " ", `\s+`) + `)\b`)
}

func TestTextsAreInUsualWords(t *testing.T) {
	eachSource(t, []string{"api", "client", "cmd", "controllers", "internal"}, func(path string) {
		for _, text := range textsOf(parsed(t, path)) {
			for _, found := range unusualIn(inStrings, text) {
				t.Errorf("%s: a text's %s: %s", path, found, text)
			}
		}
	})
}

func TestTheAPIIsInUsualWords(t *testing.T) {
	eachSource(t, []string{"api"}, func(path string) {
		for _, group := range parsed(t, path).Comments {
			for _, found := range unusualIn(inAPI, group.Text()) {
				t.Errorf("%s: a comment's %s: %s", path, found, group.Text())
			}
		}
	})
}

func TestPagesAreInUsualWords(t *testing.T) {
	for path, text := range pages(t) {
		for _, found := range unusualIn(inPages, withoutCode(text)) {
			t.Errorf("%s: %s", path, found)
		}
	}
}

func textsOf(file *ast.File) (texts []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

func TestAnUnusualWordIsFound(t *testing.T) {
	texts := textsOf(parsedSource(t, "package x\nvar _ = `It waited in\nvain`"))
	want := `line 1 has "in\nvain": write without success`
	if len(texts) != 1 || !slices.Equal(unusualIn(inStrings, texts[0]), []string{want}) {
		t.Errorf("found %q in %q", unusualIn(inStrings, texts[0]), texts)
	}
	if found := unusualIn(inStrings, "He went on."); found != nil {
		t.Errorf("found %q, which strings may have", found)
	}
}
