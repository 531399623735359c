// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package title makes titles of chats: from the first words of a chat's first message, or from what a model answers when it
// is asked for one. A title is one line of at most MaxWords words and v1alpha1.MaxTitleRunes characters that can be shown
// anywhere: without control characters, marks of formatting and quotes around it. It is pure.
package title

import (
	"encoding/json"
	"strings"
	"unicode"

	"parley.dev/parley/api/v1alpha1"
)

const (
	// firstWords is how many words of a message make a title.
	firstWords = 6
	// MaxWords is how many words a title of a model has at most.
	MaxWords = 8
	// maxAsked is how many characters of a message a model is shown: enough to know what it is about.
	maxAsked = 6000
)

const ellipsis = "…"

// Of is what the first User message of a history says; empty if there is none, or it has no text.
func Of(messages []v1alpha1.ChatMessage) string {
	for i := range messages {
		spec := &messages[i].Spec
		if spec.Role != v1alpha1.RoleUser {
			continue
		}
		said := []string{spec.Content}
		for j := range spec.Parts {
			if text := spec.Parts[j].Text; text != nil {
				said = append(said, *text)
			}
		}
		return strings.TrimSpace(strings.Join(said, "\n"))
	}
	return ""
}

// Questions is the number of User messages of a history.
func Questions(messages []v1alpha1.ChatMessage) (n int) {
	for i := range messages {
		if messages[i].Spec.Role == v1alpha1.RoleUser {
			n++
		}
	}
	return n
}

// FirstWords is how a text begins, with an ellipsis if it goes on; empty if it says nothing that can be shown.
func FirstWords(text string) string {
	// More than that is never shown, and a message may be long.
	words := strings.Fields(shown(clip(text, 4*maxAsked)))
	if len(words) > firstWords {
		return cut(strings.Join(words[:firstWords], " ") + ellipsis)
	}
	return cut(strings.Join(words, " "))
}

// Clean is the title in what a model answered; empty if there is none. Models add to it whatever comes to them: an
// introduction, quotes, marks of formatting, their thoughts, a full stop.
func Clean(answer string) string {
	answer = strings.TrimSpace(answer)
	if _, after, ok := strings.Cut(answer, "</think>"); ok {
		answer = strings.TrimSpace(after)
	}
	if strings.HasPrefix(answer, "<think>") {
		return ""
	}
	answer = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(answer, "```json"), "```"), "```"))
	if strings.HasPrefix(answer, "{") {
		return Parse(answer)
	}
	for line := range strings.Lines(answer) {
		if said := bare(line); said != "" {
			return short(said)
		}
	}
	return ""
}

// Parse is the title in the arguments of a call of Tool; empty if there is none.
func Parse(arguments string) string {
	var object struct {
		Title string `json:"title"`
	}
	if err := json.Unmarshal([]byte(arguments), &object); err != nil || strings.HasPrefix(strings.TrimSpace(object.Title), "{") {
		return ""
	}
	return Clean(object.Title)
}

// bare is a line without all that models put around a title; empty if nothing is left.
func bare(line string) string {
	line = strings.TrimSpace(shown(line))
	for _, label := range []string{"title:", "**title:**", "title -"} {
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

// short is a line with at most MaxWords words.
func short(line string) string {
	words := strings.Fields(line)
	return cut(strings.Join(words[:min(len(words), MaxWords)], " "))
}

// shown is the text with a space for everything that is no character of its own: control characters, and what changes the
// direction of writing or cannot be seen.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == unicode.ReplacementChar:
			return -1
		case unicode.IsSpace(r), unicode.Is(unicode.Cc, r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d', unicode.Is(unicode.Co, r): // A zero-width joiner is part of emojis.
			return -1
		}
		return r
	}, text)
}

// cut is the text with at most v1alpha1.MaxTitleRunes characters.
func cut(text string) string {
	if runes := []rune(text); len(runes) > v1alpha1.MaxTitleRunes {
		return strings.TrimRight(string(runes[:v1alpha1.MaxTitleRunes-1]), " …") + ellipsis
	}
	return text
}

// clip is the beginning of the text, at most that many bytes.
func clip(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "")
}
