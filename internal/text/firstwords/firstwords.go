// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package firstwords makes a title of how a conversation begins: one line of a few words that can be shown anywhere. It
// is pure, and links no model, so that the manager has it as well as generation pods.
package firstwords

import (
	"strings"
	"unicode/utf8"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

const (
	// words is how many words of a message make a title.
	words = 6
	// looked is how many bytes of a text are looked at: more than six words of the greatest length of a title never show.
	looked = 24 << 10

	ellipsis = "…"
)

// Of is how a message begins, with an ellipsis if it continues; empty if it has no text that can be shown, is not
// meant for people, or has none at all, as in the manager's cache.
func Of(spec *v1alpha1.ChatMessageSpec) string {
	if spec.Visibility == v1alpha1.VisibleToModel { // A title is for people.
		return ""
	}
	said := []string{clip.Bytes(spec.Content, looked)}
	for i := range spec.Parts {
		if part := &spec.Parts[i]; part.Type == v1alpha1.PartText && part.Text != nil {
			said = append(said, clip.Bytes(*part.Text, looked))
		}
	}
	for i := range spec.History {
		if prior := &spec.History[i]; prior.Role == v1alpha1.RoleUser && prior.Content != "" {
			said = append(said, clip.Bytes(prior.Content, looked))
			break
		}
	}
	return OfText(strings.Join(said, "\n"))
}

// OfText is how a text begins.
func OfText(text string) string {
	shown := strings.Fields(printable.Line(strings.ReplaceAll(clip.Bytes(text, looked), "\ufffd", "")))
	if len(shown) > words {
		return cut(strings.Join(shown[:words], " ") + ellipsis)
	}
	return cut(strings.Join(shown, " "))
}

// cut is the text with as many characters as a title may have.
func cut(text string) string {
	if utf8.RuneCountInString(text) <= v1alpha1.MaxTitleRunes {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:v1alpha1.MaxTitleRunes-1]), " …") + ellipsis
}
