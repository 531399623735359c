// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/test/kit/check"
)

// madeCall is a reply that calls the tool.
func madeCall(t *testing.T, id, name, input string) stream.Event {
	t.Helper()
	return called(4, fmt.Sprintf(`{"type":"ToolCall","toolCall":{"id":%q,"name":%q,"input":%s}}`, id, name, asJSON(t,
		input)))
}

// answered is a message with the result of the call.
func answered(t *testing.T, id, name, output string) stream.Event {
	t.Helper()
	return called(5, fmt.Sprintf(`{"type":"ToolResult","toolResult":{"id":%q,"name":%q,"output":%s}}`, id, name,
		asJSON(t, output)))
}

// writes is a piece of what the command of the call writes while it runs.
func writes(t *testing.T, id, text string) stream.Event {
	t.Helper()
	return streamed(4, fmt.Sprintf(`{"type":"ToolOutput","id":%q,"text":%s}`, id, asJSON(t, text)))
}

func asJSON(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	check.OK(t, err)
	return string(raw)
}

func TestWorkIsShownAsPeopleKnowIt(t *testing.T) {
	build := madeCall(t, "1", "execute", `{"command":"make\nmake test"}`)
	const failed = `{"success":false,"output":"one\ntwo\n","exit_code":2,"wall_duration_ms":1500}`
	long := strings.TrimSuffix(strings.Repeat("x\n", 50), "\n")
	for name, c := range map[string]struct {
		events []stream.Event
		want   string
	}{
		"a command": {events{build, answered(t, "1", "execute", failed)},
			"▎$ make\n▎  make test\n▎  one\n▎  two\n▎[exit code 2 after 1.5s]\n"},
		"a command whose output came while it ran": {events{build, writes(t, "1", "on"), writes(t, "1", "e\ntwo"),
			answered(t, "1", "execute", failed)},
			"▎$ make\n▎  make test\n▎  one\n▎  two\n▎[exit code 2 after 1.5s]\n"},
		"two commands at once": {events{build, madeCall(t, "2", "execute", `{"command":"ls"}`), writes(t, "1", "not now"),
			writes(t, "2", "a.go\n"), answered(t, "1", "execute", failed),
			answered(t, "2", "execute", `{"success":true,"output":"a.go\n","exit_code":0,"wall_duration_ms":3}`)},
			"▎$ make\n▎  make test\n▎$ ls\n▎  a.go\n▎$ make\n▎  one\n▎  two\n▎[exit code 2 after 1.5s]\n" +
				"▎$ ls\n▎[exit code 0 after 3ms]\n"},
		"a command that runs on": {events{build, answered(t, "1", "execute",
			`{"success":true,"output":"","wall_duration_ms":9,"background_process_id":"p1"}`)},
			"▎$ make\n▎  make test\n▎[it runs on as p1]\n"},
		"one that was killed": {events{build, answered(t, "1", "execute",
			`{"success":false,"output":"","signal":"SIGKILL","wall_duration_ms":9}`)},
			"▎$ make\n▎  make test\n▎[SIGKILL after 9ms]\n"},
		"one that could not be run": {events{build, answered(t, "1", "execute", "there is no workspace")},
			"▎$ make\n▎  make test\n▎[execute] -> there is no workspace\n"},
		"much output": {events{build, answered(t, "1", "execute",
			`{"output":`+asJSON(t, long)+`,"exit_code":0,"wall_duration_ms":1}`)},
			"▎$ make\n▎  make test\n▎  [10 lines more]\n" + strings.Repeat("▎  x\n", 40) + "▎[exit code 0 after 1ms]\n"},
		"an output that plays the plug-in": {events{build, writes(t, "1", "\r▎[exit code 0]\n\x1b[31m"),
			answered(t, "1", "execute", failed)},
			"▎$ make\n▎  make test\n▎  \\u000d\\u258e[exit code 0]\n▎  \\u001b[31m\n▎[exit code 2 after 1.5s]\n"},
		"a change of files": {events{
			madeCall(t, "1", "edit_files", `{"edits":[{"path":"a.go","old_text":"1"},{"path":"a.go"},{"path":"b.go"}]}`),
			answered(t, "1", "edit_files", `{"files":[{"path":"a.go","diff":"-1\n+2\n"},{"path":"b.go","diff":"-x\n"}]}`)},
			"▎[edit_files a.go, b.go] -> 2 files\n▎  -1\n▎  +2\n▎  -x\n"},
		"a file that is written": {events{madeCall(t, "1", "write_file", `{"path":"a.go","content":"a very long text"}`),
			answered(t, "1", "write_file", `{"ok":true,"path":"a.go","size":16}`)},
			"▎[write_file a.go] -> 16 bytes\n"},
		"a file that is read": {events{madeCall(t, "1", "read_file", `{"path":"a.go"}`),
			answered(t, "1", "read_file", `{"content":"1\ta\n","lines_read":1,"total_lines":9}`)},
			"▎[read_file a.go] -> 1 of 9 lines\n"},
		"a file that is not there": {events{madeCall(t, "1", "read_file", `{"path":"a.go"}`),
			answered(t, "1", "read_file", `a.go does not exist`)}, "▎[read_file a.go] -> a.go does not exist\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			p := NewPrinter(&out, &strings.Builder{}, false, hints)
			for _, e := range c.events {
				check.OK(t, p.Event(e, false))
			}
			check.Equal(t, "shown", c.want, out.String())
		})
	}
}
