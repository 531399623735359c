// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"parley.dev/parley/test/kit/check"
)

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
		for _, form := range []Form{Title, TurnSummary} {
			caption := form.Clean(text)
			words, runes := len(strings.Fields(caption)), utf8.RuneCountInString(caption)
			check.Equal(t, "valid, one line, too long", []any{true, false, strings.TrimSpace(caption), false},
				[]any{utf8.ValidString(caption), strings.ContainsFunc(caption, unicode.IsControl), caption,
					words > form.Words || runes > form.Runes})
		}
	})
}
