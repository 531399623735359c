// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podNamed(name string) corev1.Pod { return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func committed(version, index int64, attempt int, content string) event {
	return event{
		id: fmt.Sprintf("%d.0.%d", version, index+1), name: "message",
		data: fmt.Sprintf(`{"historyVersion":%d,"index":%d,"message":{"name":"m%d","content":%q,"attempt":%d}}`, version,
			index, index, content, attempt),
	}
}

func shown(version int64, attempt int, seq int64, piece string) event {
	return event{
		id: fmt.Sprintf("%d.%d.%d", version, attempt, seq), name: "message_part",
		data: fmt.Sprintf(`{"historyVersion":%d,"attempt":%d,"seq":%d,"part":{"type":"Text","text":%q}}`, version, attempt,
			seq, piece),
	}
}

func TestAStoryIsWholeOrItsFlawIsNamed(t *testing.T) {
	question := committed(1, 0, 0, "Hello?")
	cases := map[string]struct {
		events []event
		says   string
	}{
		"parts and then their message": {[]event{question, shown(1, 1, 1, "Hi "), shown(1, 1, 2, "you."),
			committed(2, 1, 1, "Hi you.")}, ""},
		"the beginning of a reply": {[]event{question, shown(1, 1, 1, "Hi "), committed(2, 1, 1, "Hi you.")}, ""},
		"a lost attempt and another": {[]event{question, shown(1, 1, 1, "Ho"), shown(1, 2, 1, "Hi"),
			committed(2, 1, 2, "Hi you.")}, ""},
		"a message that was missed": {[]event{question, committed(3, 2, 0, "And?")}, "has index 2, the next is 1"},
		"a message that came twice": {[]event{question, question}, "has index 0, the next is 1"},
		"a gap between parts": {[]event{question, shown(1, 1, 1, "Hi "), shown(1, 1, 3, ".")},
			"part 1.1.3 came after part 1"},
		"a part that came twice": {[]event{question, shown(1, 1, 1, "Hi "), shown(1, 1, 1, "Hi ")},
			"part 1.1.1 came after part 1"},
		"a part of an older attempt": {[]event{question, shown(1, 2, 1, "Hi "), shown(1, 1, 1, "Ho")},
			"older attempt"},
		"a part behind its message": {[]event{question, committed(2, 1, 1, "Hi you."), shown(1, 1, 1, "Hi")},
			"after the message"},
		"another reply than the one shown": {[]event{question, shown(1, 1, 1, "Ho"), committed(2, 1, 1, "Hi you.")},
			"not how it begins"},
		"a history that was replaced":       {[]event{question, {name: "history_reset", data: "{}"}}, "history_reset"},
		"an event that is not what it says": {[]event{{name: "message", data: "["}}, "cannot be read"},
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
			if last := c.events[len(c.events)-1].id; s.last != last && last != "" {
				t.Errorf("it would resume behind %s, not %s", s.last, last)
			}
		})
	}
}

func TestEventsAreReadWhole(t *testing.T) {
	body := "retry: 1000\n\n: keep-alive\n\nid: 1.0.1\nevent: message\ndata: {\"a\": \"b: c\"}\n\nevent: status\ndata: {}\n\nid: 2.0.2\nevent: message\ndata: {"
	var got []event
	lines := 0
	if err := readEvents(strings.NewReader(body), func() { lines++ }, func(e event) { got = append(got, e) }); err != nil {
		t.Fatal(err)
	}
	want := []event{{"1.0.1", "message", `{"a": "b: c"}`}, {"", "status", "{}"}}
	if fmt.Sprint(got) != fmt.Sprint(want) || lines < 10 {
		t.Errorf("got %q of %d lines, want %q", got, lines, want)
	}
}
