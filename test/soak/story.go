// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
)

// story is what a follower of a chat was told, over all its connections. It holds that each committed message came once
// and in its place, that parts came without a gap, and that what was shown of a reply is how the reply begins.
type story struct {
	// last is the id to resume behind.
	last string
	// names of the messages, in order.
	names []string
	// version that the newest message's commit made.
	version int64
	// attempt whose parts came last, with the version of the history that it builds on; seq is the number of its last
	// part, shown the text of all.
	attempt  [2]int64
	seq      int64
	shown    strings.Builder
	parts    int
	problems []string
}

func (s *story) wrong(format string, args ...any) {
	s.problems = append(s.problems, "a follower: "+fmt.Sprintf(format, args...))
}

func (s *story) take(e event) {
	if e.id != "" {
		s.last = e.id
	}
	switch e.name {
	case stream.EventMessage:
		var m stream.MessageCommitted
		if err := json.Unmarshal([]byte(e.data), &m); err != nil {
			s.wrong("event %s cannot be read: %v", e.id, err)
			return
		}
		s.message(e.id, m)
	case stream.EventMessagePart:
		var p stream.MessagePart
		if err := json.Unmarshal([]byte(e.data), &p); err != nil {
			s.wrong("event %s cannot be read: %v", e.id, err)
			return
		}
		s.part(e.id, p)
	case stream.EventHistoryReset, stream.EventDeleted, stream.EventError:
		s.wrong("%s: %s", e.name, e.data)
	}
}

func (s *story) message(id string, m stream.MessageCommitted) {
	if want := int64(len(s.names)); m.Index != want {
		s.wrong("message %s (event %s) has index %d, the next is %d", m.Message.Name, id, m.Index, want)
		return
	}
	if a := s.attempt; a == [2]int64{m.HistoryVersion - 1, int64(m.Message.Attempt)} &&
		!strings.HasPrefix(text(m.Message.Content, m.Message.Parts), s.shown.String()) {
		s.wrong("what was shown of %s is not how it begins: %q", m.Message.Name, s.shown.String())
	}
	s.names = append(s.names, m.Message.Name)
	s.version = m.HistoryVersion
}

func (s *story) part(id string, p stream.MessagePart) {
	s.parts++
	attempt := [2]int64{p.HistoryVersion, int64(p.Attempt)}
	if attempt != s.attempt {
		if attempt[0] < s.attempt[0] || attempt[0] == s.attempt[0] && attempt[1] < s.attempt[1] {
			s.wrong("part %s is of an older attempt than %v", id, s.attempt)
		}
		s.attempt, s.seq = attempt, 0
		s.shown.Reset()
	}
	if p.HistoryVersion < s.version {
		s.wrong("part %s came after the message that it is part of", id)
	}
	if p.Seq != s.seq+1 {
		s.wrong("part %s came after part %d", id, s.seq)
	}
	s.seq = p.Seq
	if p.Part.Type == parts.Text {
		s.shown.WriteString(p.Part.Text)
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
