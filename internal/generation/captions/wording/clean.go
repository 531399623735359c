// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wording words the requests for captions, and reads captions from the answers. A caption is one line within
// the limits of its Form, without control characters, formatting and quotes around it. It is pure.
package wording

import (
	"encoding/json"
	"strings"

	"parley.dev/parley/internal/text/printable"
)

// Clean is the caption in an answer; empty if there is none. Models add introductions, quotes, formatting, thoughts and
// full stops.
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
		if words := strings.Fields(f.undecorate(line)); len(words) > 0 {
			return f.cut(strings.Join(words[:min(len(words), f.Words)], " "))
		}
	}
	return ""
}

// parse is the caption in the arguments of a call of the tool; empty if there is none.
func (f Form) parse(arguments string) string {
	var object map[string]json.RawMessage
	var caption string
	if json.Unmarshal([]byte(arguments), &object) != nil || json.Unmarshal(object[f.field], &caption) != nil ||
		strings.HasPrefix(strings.TrimSpace(caption), "{") {
		return ""
	}
	return f.Clean(caption)
}

// undecorate removes labels, quotes and formatting around a caption.
func (f Form) undecorate(line string) string {
	line = strings.TrimSpace(printable.Line(strings.ReplaceAll(line, "\ufffd", "")))
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

// cut limits the characters of the text.
func (f Form) cut(text string) string {
	if runes := []rune(text); len(runes) > f.Runes {
		return strings.TrimRight(string(runes[:f.Runes-1]), " …") + "…"
	}
	return text
}
