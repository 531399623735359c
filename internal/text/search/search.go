// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package search finds words in messages. It is pure.
package search

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley.dev/parley/api/v1beta1"
)

const (
	// excerptRunes is about how long an excerpt is, and leadRunes how much of it is before the first word.
	excerptRunes, leadRunes = 160, 40
)

// Query is what a message must have: each of the terms, which are in lower case.
type Query struct{ terms []string }

// Parse reads a query: words in any order, and phrases in double quotes. Case does not count.
func Parse(text string) (Query, error) {
	var q Query
	for i, piece := range strings.Split(strings.ToLower(text), `"`) {
		if i%2 == 0 {
			q.terms = append(q.terms, strings.Fields(piece)...)
		} else if phrase := strings.Join(strings.Fields(piece), " "); phrase != "" {
			q.terms = append(q.terms, phrase)
		}
	}
	if len(q.terms) == 0 {
		return q, errors.New("the query has no word")
	}
	return q, nil
}

// Find returns a line of the message around the first term, if the message has all terms. Superseded messages are not
// found.
func (q Query) Find(m *v1beta1.ChatMessage) (excerpt string, found bool) {
	if m.Status.State == v1beta1.MessageSuperseded {
		return "", false
	}
	text := textOf(&m.Spec)
	lower := strings.ToLower(text)
	first := len(lower)
	for _, term := range q.terms {
		at := strings.Index(lower, term)
		if at < 0 {
			return "", false
		}
		first = min(first, at)
	}
	// A letter may have another size in lower case, but it stays one letter.
	return around(text, utf8.RuneCountInString(lower[:first])), true
}

// textOf is the text of a message on one line: what is said, and what its calls and their results have.
func textOf(spec *v1beta1.ChatMessageSpec) string {
	texts := []string{spec.Content}
	for i := range spec.Parts {
		part := &spec.Parts[i]
		if part.Type == v1beta1.PartText && part.Text != nil {
			texts = append(texts, *part.Text)
		}
		if part.ToolCall != nil {
			texts = append(texts, part.ToolCall.Name, part.ToolCall.Input)
		}
		if part.ToolResult != nil {
			texts = append(texts, part.ToolResult.Output)
		}
	}
	for i := range spec.History {
		texts = append(texts, spec.History[i].Content)
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(strings.Join(texts, " "), "\uFFFD"),
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// around is the text around its rune at a place.
func around(text string, at int) string {
	from := max(0, at-leadRunes)
	excerpt, runes := "", 0
	for i := range text {
		if runes == from {
			excerpt = text[i:]
		}
		if runes == from+excerptRunes {
			excerpt = excerpt[:len(excerpt)-(len(text)-i)] + "…"
			break
		}
		runes++
	}
	if from > 0 {
		excerpt = "…" + excerpt
	}
	return excerpt
}
