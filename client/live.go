// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
)

// Live is the attempt under way: a preview of the message that it will yield.
type Live struct {
	// HistoryVersion and Attempt say which attempt it is. The message that it yields has the next version.
	HistoryVersion int64
	Attempt        int32
	// Role of the message to be.
	Role string
	// Seq is the number of the last part.
	Seq int64
	// Parts so far. Pieces of the same type and id are one part, of at most MaxEvent bytes.
	Parts []LivePart
}

// LivePart is a part of a message that is being generated.
type LivePart struct {
	parts.Part

	text *strings.Builder // what Text is a view of, while it grows
}

// Previews reports whether the parts are of that attempt. Those of no attempt, which is nil, are of none.
func (l *Live) Previews(version int64, attempt int32) bool {
	return l != nil && l.HistoryVersion == version && l.Attempt == attempt
}

// Has reports whether a part of the type has come, with that id if it is not empty.
func (l *Live) Has(kind parts.Type, id string) bool {
	return l != nil && slices.ContainsFunc(l.Parts, func(p LivePart) bool {
		return p.Type == kind && (id == "" || p.ID == id)
	})
}

// Text is what the reply says so far.
func (l *Live) Text() string {
	if l == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range l.Parts {
		if p.Type == parts.Text {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// add takes a part. An outline has no texts.
func (l *Live) add(p *stream.MessagePart, outline bool) {
	l.Seq = p.Seq
	i := slices.IndexFunc(l.Parts, func(have LivePart) bool { return have.Type == p.Part.Type && have.ID == p.Part.ID })
	switch {
	case i < 0 && outline:
		l.Parts = append(l.Parts, LivePart{Part: parts.Part{Type: p.Part.Type, ID: p.Part.ID, Name: p.Part.Name}})
	case i < 0:
		l.Parts = append(l.Parts, LivePart{Part: p.Part})
	case !outline && len(l.Parts[i].Text) < MaxEvent:
		l.Parts[i].grow(p.Part.Text)
	}
}

// grow makes the text longer, in amortized constant time for each byte.
func (p *LivePart) grow(text string) {
	if p.text == nil {
		p.text = &strings.Builder{}
		p.text.WriteString(p.Text)
	}
	p.text.WriteString(text)
	p.Text = p.text.String()
}
