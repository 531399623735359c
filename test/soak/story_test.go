// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
)

func podNamed(name string) corev1.Pod { return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func committed(version, index int64, attempt int, content string) stream.Event {
	return stream.Event{
		ID: fmt.Sprintf("%d.0.%d", version, index+1), Name: "message",
		Data: fmt.Appendf(nil, `{"historyVersion":%d,"index":%d,"message":{"name":"m%d","content":%q,"attempt":%d}}`, version,
			index, index, content, attempt),
	}
}

func shown(version int64, attempt int, seq int64, piece string) stream.Event {
	return stream.Event{
		ID: fmt.Sprintf("%d.%d.%d", version, attempt, seq), Name: "message_part",
		Data: fmt.Appendf(nil, `{"historyVersion":%d,"attempt":%d,"seq":%d,"part":{"type":"Text","text":%q}}`, version, attempt,
			seq, piece),
	}
}

func TestStoryIsWholeOrNamesItsFlaw(t *testing.T) {
	question := committed(1, 0, 0, "Hello?")
	cases := map[string]struct {
		events []stream.Event
		says   string
	}{
		"parts and then their message": {[]stream.Event{question, shown(1, 1, 1, "Hi "), shown(1, 1, 2, "you."),
			committed(2, 1, 1, "Hi you.")}, ""},
		"the beginning of a reply": {[]stream.Event{question, shown(1, 1, 1, "Hi "), committed(2, 1, 1, "Hi you.")}, ""},
		"a lost attempt and another": {[]stream.Event{question, shown(1, 1, 1, "Ho"), shown(1, 2, 1, "Hi"),
			committed(2, 1, 2, "Hi you.")}, ""},
		"a message that was missed": {[]stream.Event{question, committed(3, 2, 0, "And?")}, "has index 2, the next is 1"},
		"a message that came twice": {[]stream.Event{question, question}, "has index 0, the next is 1"},
		"a gap between parts": {[]stream.Event{question, shown(1, 1, 1, "Hi "), shown(1, 1, 3, ".")},
			"part 1.1.3 came after part 1"},
		"a part that came twice": {[]stream.Event{question, shown(1, 1, 1, "Hi "), shown(1, 1, 1, "Hi ")},
			"part 1.1.1 came after part 1"},
		"a part of an older attempt": {[]stream.Event{question, shown(1, 2, 1, "Hi "), shown(1, 1, 1, "Ho")},
			"older attempt"},
		"a part behind its message": {[]stream.Event{question, committed(2, 1, 1, "Hi you."), shown(1, 1, 1, "Hi")},
			"after the message"},
		"another reply than the one shown": {[]stream.Event{question, shown(1, 1, 1, "Ho"), committed(2, 1, 1, "Hi you.")},
			"not how it begins"},
		"a history that was replaced": {[]stream.Event{question, {Name: "history_reset", Data: []byte("{}")}},
			"history_reset"},
		"an event that is not what it says": {[]stream.Event{{Name: "message", Data: []byte("[")}}, "cannot be read"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s story
			for _, e := range c.events {
				s.take(e)
			}
			got := strings.Join(s.problems, "\n")
			if c.says == "" && got != "" || !strings.Contains(got, c.says) {
				t.Errorf("got %q, want %q", got, c.says)
			}
			if last := c.events[len(c.events)-1].ID; s.last != last && last != "" {
				t.Errorf("it would resume behind %s, not %s", s.last, last)
			}
		})
	}
}
