// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package firstwords makes a title of the beginning of a conversation: one printable line of a few words. It is pure,
// and imports no model, so that the manager can use it as well as generation pods.
package firstwords

import (
	"strings"
	"unicode/utf8"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

const (
	// words is how many words of a message make a title.
	words = 6
	// maxRead is how many bytes of a text are read. A title never shows more.
	maxRead = 24 << 10

	ellipsis = "…"
)

// Of is the beginning of a message, with an ellipsis if it continues. It is empty if the message has no printable text,
// as in the manager's cache, or is not for people.
func Of(spec *v1beta1.ChatMessageSpec) string {
	if spec.Visibility == v1beta1.VisibleToModel { // A title is for people.
		return ""
	}
	texts := []string{clip.Bytes(spec.Content, maxRead)}
	for i := range spec.Parts {
		if part := &spec.Parts[i]; part.Type == v1beta1.PartText && part.Text != nil {
			texts = append(texts, clip.Bytes(*part.Text, maxRead))
		}
	}
	for i := range spec.History {
		if prior := &spec.History[i]; prior.Role == v1beta1.RoleUser && prior.Content != "" {
			texts = append(texts, clip.Bytes(prior.Content, maxRead))
			break
		}
	}
	return OfText(strings.Join(texts, "\n"))
}

// OfText is the beginning of a text.
func OfText(text string) string {
	shown := strings.Fields(printable.Line(strings.ReplaceAll(clip.Bytes(text, maxRead), "\ufffd", "")))
	title := strings.Join(shown[:min(words, len(shown))], " ")
	if len(shown) > words {
		title += ellipsis
	}
	if utf8.RuneCountInString(title) <= v1beta1.MaxTitleRunes {
		return title
	}
	return strings.TrimRight(clip.Runes(title, v1beta1.MaxTitleRunes-1), " …") + ellipsis
}
