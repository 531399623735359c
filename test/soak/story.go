// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/client"
)

// story is what a follower of a chat was told, over all its connections. It holds that each committed message came once
// and in its place, that parts came without a gap, and that what was shown of a reply is how the reply begins.
type story struct {
	chat client.Transcript
	// last is the id to resume behind.
	last string
	// attempt whose parts came last, with the version of the history that it builds on.
	attempt  [2]int64
	parts    int
	problems []string
}

func (s *story) wrong(format string, args ...any) {
	s.problems = append(s.problems, "a follower: "+fmt.Sprintf(format, args...))
}

func (s *story) take(e stream.Event) {
	if e.ID != "" {
		s.last = e.ID
	}
	update, err := client.Decode(e)
	if err != nil {
		s.wrong("event %s cannot be read: %v", e.ID, err)
		return
	}
	switch u := update.(type) {
	case *stream.MessageCommitted:
		s.message(e.ID, u)
	case *stream.MessagePart:
		s.part(e.ID, u)
	case *client.Reset, client.Deleted, *stream.Error:
		s.wrong("%s: %s", e.Name, e.Data)
	}
	s.chat.Take(update)
}

// message checks a message before it is taken.
func (s *story) message(id string, m *stream.MessageCommitted) {
	if want := int64(len(s.chat.Messages)); m.Index != want {
		s.wrong("message %s (event %s) has index %d, the next is %d", m.Message.Name, id, m.Index, want)
	}
	shown := s.chat.Live.Text()
	if s.chat.Live.Previews(m.HistoryVersion-1, m.Message.Attempt) &&
		!strings.HasPrefix(text(m.Message.Content, m.Message.Parts), shown) {
		s.wrong("what was shown of %s is not how it begins: %q", m.Message.Name, shown)
	}
}

// part checks a part before it is taken.
func (s *story) part(id string, p *stream.MessagePart) {
	s.parts++
	seq, attempt := int64(0), [2]int64{p.HistoryVersion, int64(p.Attempt)}
	if s.chat.Live.Previews(p.HistoryVersion, p.Attempt) {
		seq = s.chat.Live.Seq
	}
	if attempt[0] < s.attempt[0] || attempt[0] == s.attempt[0] && attempt[1] < s.attempt[1] {
		s.wrong("part %s is of an older attempt than %v", id, s.attempt)
	}
	s.attempt = attempt
	if n := len(s.chat.Messages); n > 0 && p.HistoryVersion < s.chat.Messages[n-1].HistoryVersion {
		s.wrong("part %s came after the message that it is part of", id)
	}
	if p.Seq != seq+1 {
		s.wrong("part %s came after part %d", id, seq)
	}
}

// text is the whole text of a message.
func text(content string, all []v1alpha1.MessagePart) string {
	b := strings.Builder{}
	b.WriteString(content)
	for _, p := range all {
		if p.Type == v1alpha1.PartText {
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}
