// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wording makes what a chat or a turn is called where there is room for a few words only: from the first words
// of a message, or from what a model answers when it is asked. A caption is one line, no longer than its Form allows,
// that can be shown anywhere: without control characters, marks of formatting and quotes around it. It is pure.
package wording

import (
	"encoding/json"
	"strings"

	"parley.dev/parley/internal/text/firstwords"
	"parley.dev/parley/internal/text/printable"
)

const ellipsis = "…"

// FirstWords is how a text begins, with an ellipsis if it goes on; empty if it says nothing that can be shown.
func FirstWords(text string) string { return firstwords.OfText(text) }

// Clean is the caption in what a model answered; empty if there is none. Models add to it whatever comes to them: an
// introduction, quotes, marks of formatting, their thoughts, a full stop.
func (f Form) Clean(answer string) string {
	answer = strings.TrimSpace(answer)
	if _, after, ok := strings.Cut(answer, "</think>"); ok {
		answer = strings.TrimSpace(after)
	}
	if strings.HasPrefix(answer, "<think>") {
		return ""
	}
	answer = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(answer, "```json"), "```"), "```"))
	if strings.HasPrefix(answer, "{") {
		return f.parse(answer)
	}
	for line := range strings.Lines(answer) {
		if said := f.bare(line); said != "" {
			return f.short(said)
		}
	}
	return ""
}

// parse is the caption in the arguments of a call of the tool; empty if there is none.
func (f Form) parse(arguments string) string {
	var object map[string]json.RawMessage
	var said string
	if json.Unmarshal([]byte(arguments), &object) != nil || json.Unmarshal(object[f.field], &said) != nil ||
		strings.HasPrefix(strings.TrimSpace(said), "{") {
		return ""
	}
	return f.Clean(said)
}

// bare is a line without all that models put around a caption; empty if nothing is left.
func (f Form) bare(line string) string {
	line = strings.TrimSpace(shown(line))
	for _, label := range []string{f.label + ":", "**" + f.label + ":**", f.label + " -"} {
		if len(line) >= len(label) && strings.EqualFold(line[:len(label)], label) {
			line = line[len(label):]
		}
	}
	for before := ""; before != line; {
		before = line
		line = strings.Trim(line, " \t\"'`*_#“”„‟«»‘’‚‹›")
		line = strings.TrimRight(line, ".。:;,")
	}
	return line
}

// short is a line with as many words as there may be.
func (f Form) short(line string) string {
	words := strings.Fields(line)
	return f.cut(strings.Join(words[:min(len(words), f.Words)], " "))
}

// shown is the text in one line, without what cannot be shown.
func shown(text string) string {
	return printable.Line(strings.ReplaceAll(text, "\ufffd", ""))
}

// cut is the text with as many characters as there may be.
func (f Form) cut(text string) string {
	if runes := []rune(text); len(runes) > f.Runes {
		return strings.TrimRight(string(runes[:f.Runes-1]), " …") + ellipsis
	}
	return text
}
