// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/test/kit/check"
)

// events are what a stream tells.
type events []stream.Event

func status(turn, ready string) stream.Event {
	return stream.Event{Name: "status", Data: fmt.Appendf(nil, `{"turn":%q,"ready":%q}`, turn, ready)}
}

func text(version int, text string) stream.Event {
	return stream.Event{Name: "message_part",
		Data: fmt.Appendf(nil,
			`{"historyVersion":%d,"attempt":1,"seq":1,"role":"Assistant","part":{"type":"Text","text":%q}}`, version, text)}
}

func committed(version int, role, text string) stream.Event {
	return stream.Event{Name: "message",
		Data: fmt.Appendf(nil,
			`{"historyVersion":%d,"index":1,"message":{"name":"m","role":%q,"attempt":1,"parts":[{"type":"Text","text":%q}]}}`,
			version, role, text)}
}

func asked(version int, name string) stream.Event {
	return stream.Event{Name: "message",
		Data: fmt.Appendf(nil, `{"historyVersion":%d,"index":1,"message":{"name":%q,"role":"User","content":"question"}}`,
			version, name)}
}

func called(version int, parts string) stream.Event {
	return stream.Event{Name: "message",
		Data: fmt.Appendf(nil,
			`{"historyVersion":%d,"index":1,"message":{"name":"m","role":"Assistant","attempt":1,"parts":[%s]}}`, version,
			parts)}
}

func streamed(version int, part string) stream.Event {
	return stream.Event{Name: "message_part",
		Data: fmt.Appendf(nil, `{"historyVersion":%d,"attempt":1,"seq":1,"role":"Assistant","part":%s}`, version, part)}
}

const (
	call   = `{"type":"ToolCall","toolCall":{"id":"1","name":"current_time","input":"{}"}}`
	result = `{"type":"ToolResult","toolResult":{"id":"1","name":"current_time","output":"noon\n"}}`
)

var hints = Hint{Chat: "triage",
	Command: func(words ...string) string { return "kubectl chat " + strings.Join(words, " ") }}

func TestOnlyTheTurnOfTheMessageIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		events events
		want   string
	}{
		"a turn that begins at once": {
			events: events{status("old", "True"), status("mine", "Unknown"), text(3, "Hel"), text(3, "lo"),
				committed(4, "Assistant", "Hello"), status("mine", "True"), text(5, "later")},
			want: "Hello\n",
		},
		"a turn that waits for another one": {
			events: events{status("other", "Unknown"), text(1, "not mine"), text(1, "nor this"),
				status("mine", "Unknown"), text(3, "Hello"), committed(4, "Assistant", "Hello"),
				status("next", "Unknown"), text(5, "later")},
			want: "Hello\n",
		},
		"parts that were missed": {
			events: events{status("mine", "Unknown"), text(3, "Hel"), committed(4, "Assistant", "Hello"),
				status("mine", "True")},
			want: "Hello\n",
		},
		"a reply that comes with its question as one change": {
			events: events{asked(3, "mine"), committed(4, "Assistant", "Hello"), status("mine", "True"), text(5, "later")},
			want:   "Hello\n",
		},
		"a reply whose commit begins the next turn": {
			events: events{asked(3, "mine"), status("mine", "Unknown"), committed(4, "Assistant", "Hello"), asked(4, "next"),
				status("next", "Unknown"), text(4, "later")},
			want: "Hello\n",
		},
		"a turn that was promoted by the reply before": {
			events: events{committed(3, "Assistant", "not mine"), asked(3, "mine"), status("mine", "Unknown"), text(3, "Hello"),
				committed(4, "Assistant", "Hello"), status("mine", "True")},
			want: "Hello\n",
		},
		"a reply that is not what was streamed": {
			events: events{asked(3, "mine"), text(3, "Hullo"), committed(4, "Assistant", "Hello"), status("mine", "True")},
			want:   "Hullo\nHello\n",
		},
		"a tool that is streamed": {
			events: events{
				asked(3, "mine"), streamed(3, `{"type":"ToolCall","id":"1","name":"current_time","text":"{}"}`), called(4, call),
				status("mine", "Unknown"),
				streamed(4, `{"type":"ToolResult","id":"1","name":"current_time","text":"noon\n"}`), called(5, result),
				text(5, "It is noon"), committed(6, "Assistant", "It is noon"), status("mine", "True"),
			},
			want: "▎[current_time {}] -> noon\nIt is noon\n",
		},
		"a tool that is only committed": {
			events: events{asked(3, "mine"), called(4, call), called(5, result), committed(6, "Assistant", "It is noon"),
				status("mine", "True")},
			want: "▎[current_time {}] -> noon\nIt is noon\n",
		},
		"results of a client, which do not name the tools": {
			events: events{asked(3, "mine"), called(4, call+","+strings.ReplaceAll(call, `"1"`, `"2"`)),
				{Name: "message",
					Data: []byte(`{"historyVersion":5,"index":2,"message":{"name":"r","role":"Tool","parts":[` +
						strings.ReplaceAll(result, `"name":"current_time",`, "") + `]}}`)}, committed(6, "Assistant", "It is noon"),
				status("mine", "True")},
			want: "▎[current_time {}]\n▎[current_time {}]\n▎[current_time] -> noon\nIt is noon\n",
		},
		"an attempt that was lost": {
			events: events{status("mine", "Unknown"), text(3, "Hel"), {Name: "preview_reset", Data: []byte(`{}`)},
				text(3, "Good day"), committed(4, "Assistant", "Good day"), status("mine", "True")},
			want: "Hel\nGood day\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			turn := &Turn{Printer: NewPrinter(&out, &errOut, false, hints), Message: "mine"}
			for _, e := range c.events {
				check.OK(t, turn.Event(e))
				if turn.Ended {
					break
				}
			}
			turn.Printer.EndLine()
			check.Equal(t, "shown", c.want, out.String())
		})
	}
}

func TestWaitForPersonEndsTheTurn(t *testing.T) {
	const failed = `{"turn":"old","ready":"False","reason":"Overloaded","result":"Failed"}`
	blocked := func(ready, end string) string {
		return fmt.Sprintf(`{"turn":"old","ready":%q,"reason":"R","message":"m","wait":{"for":%q,"reason":"R","message":"m"}}`,
			ready, end)
	}
	for name, c := range map[string]struct{ status, want, notes string }{
		"a turn before that failed": {failed, "", ""},
		"a failed turn, and an archive that failed": {`{"turn":"old","ready":"False","reason":"Overloaded",` +
			`"wait":{"for":"ArchiveStore","reason":"AccessDenied","message":"no"}}`, "", "▎[AccessDenied: no]\n"},
		"a model that is missing":     {blocked("False", "ChatModelConfig"), "R: m", ""},
		"a model that may still come": {blocked("Unknown", "ChatModelConfig"), "", ""},
		"a chat that is archived":     {blocked("True", "Unarchive"), "R: m", ""},
		"a pod that starts":           {blocked("Unknown", "Pod"), "", "▎[R: m]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			turn := &Turn{Printer: NewPrinter(&out, &errOut, false, hints), Message: "mine"}
			err := turn.Event(stream.Event{Name: "status", Data: []byte(c.status)})
			if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != c.want {
				t.Errorf("it ends with %q, want %q", got, c.want)
			}
			check.Equal(t, "notes", c.notes, errOut.String())
		})
	}
}
