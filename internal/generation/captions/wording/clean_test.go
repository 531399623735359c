// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

func TestFirstWordsOfAMessageAreItsTitle(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a short message stays as it is":    {"What time is it?", "What time is it?"},
		"six words stay as they are":        {"one two three four five six", "one two three four five six"},
		"more words are left out":           {"one two three four five six seven", "one two three four five six…"},
		"white space is one space":          {"  one\n\ttwo  \r\n three ", "one two three"},
		"long words are cut":                {strings.Repeat("x", 90), strings.Repeat("x", 79) + "…"},
		"characters are counted, not bytes": {strings.Repeat("ß", 80), strings.Repeat("ß", 80)},
		"a language without spaces is cut":  {strings.Repeat("好", 200), strings.Repeat("好", 79) + "…"},
		"six long words have one ellipsis": {strings.Repeat(strings.Repeat("y", 15)+" ", 9),
			strings.Repeat(strings.Repeat("y", 15)+" ", 4) + strings.Repeat("y", 15) + "…"},
		"what cannot be shown is left out": {"a\x00b \u202ec\u200bd \x1b[31m", "a b cd [31m"},
		"an emoji stays whole":             {"👩\u200d💻 help", "👩\u200d💻 help"},
		"nothing has no title":             {" \n\t", ""},
		"a message of a megabyte is no worry": {"one two three four five six" + strings.Repeat(" more", 200_000),
			"one two three four five six…"},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "the first words", c.want, FirstWords(c.text))
		})
	}
}

func TestDecorationOfATitleIsTakenOff(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"a title":                {"Pods stuck in ContainerCreating", "Pods stuck in ContainerCreating"},
		"quotes":                 {`"Stuck pods"`, "Stuck pods"},
		"other quotes":           {"„Hängende Pods“", "Hängende Pods"},
		"quotes and a full stop": {"“Stuck pods.”", "Stuck pods"},
		"quotes within stay":     {`The "latest" tag considered harmful`, `The "latest" tag considered harmful`},
		"an apostrophe stays":    {"Why doesn't it start", "Why doesn't it start"},
		"a question mark stays":  {"Why stuck?", "Why stuck?"},
		"a label":                {"Title: Stuck pods", "Stuck pods"},
		"a label in bold":        {"**Title:** Stuck pods", "Stuck pods"},
		"a heading":              {"# Stuck pods\n\nThey are stuck because", "Stuck pods"},
		"bold":                   {"**Stuck pods**", "Stuck pods"},
		"empty lines before":     {"\n\n  Stuck pods\n", "Stuck pods"},
		"thoughts":               {"<think>The user\nasks</think>\n\nStuck pods", "Stuck pods"},
		"thoughts alone":         {"<think>The user asks about", ""},
		"an object":              {`{"title": "Stuck pods"}`, "Stuck pods"},
		"an object in a fence":   {"```json\n{\"title\": \"Stuck pods\"}\n```", "Stuck pods"},
		"half an object":         {`{"title": "Stuck`, ""},
		"another object":         {`{"name": "Stuck"}`, ""},
		"an object in an object": {`{"title": "{\"title\": \"x\"}"}`, ""},
		"more than eight words": {"one two three four five six seven eight nine ten",
			"one two three four five six seven eight"},
		"more than eighty characters":       {strings.Repeat("ä", 100), strings.Repeat("ä", 79) + "…"},
		"control characters":                {"Stuck\x1b[0m pods\u202e", "Stuck [0m pods"},
		"nothing":                           {"", ""},
		"nothing but marks":                 {`"**"`, ""},
		"a colon at the end":                {"Stuck pods:", "Stuck pods"},
		"something that is no UTF-8 at all": {"Stuck \xff\xfe pods", "Stuck pods"},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "the title", c.want, Title.Clean(c.answer))
		})
	}
}

func FuzzATitleCanBeShownAnywhere(f *testing.F) {
	for _, seed := range []string{"Stuck pods", `{"title":"x"}`, "<think>", "# \"a\"", "\x00\u202e",
		strings.Repeat("w ", 90)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, title := range []string{Title.Clean(text), FirstWords(text)} {
			switch {
			case !utf8.ValidString(title) || utf8.RuneCountInString(title) > v1alpha1.MaxTitleRunes:
				t.Errorf("%q is no title", title)
			case strings.ContainsFunc(title, unicode.IsControl) || title != strings.TrimSpace(title):
				t.Errorf("%q is more than one line", title)
			}
		}
		if n := len(strings.Fields(Title.Clean(text))); n > Title.Words {
			t.Errorf("a title of %d words", n)
		}
		summary := TurnSummary.Clean(text)
		words, runes := len(strings.Fields(summary)), utf8.RuneCountInString(summary)
		check.Equal(t, text, true, words <= TurnSummary.Words && runes <= TurnSummary.Runes)
	})
}
