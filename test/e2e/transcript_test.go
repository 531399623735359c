// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// update has the golden files written again: make test-e2e E2E_FLAGS='-run … -update'.
var update = flag.Bool("update", false, "write the golden files again")

// masks are what differs from run to run, and what stands for it. Everything else of a transcript is the same.
var masks = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`"wall_duration_ms": \d+`), `"wall_duration_ms": MS`},
	{regexp.MustCompile(`"started_at": "[^"]+"`), `"started_at": "TIME"`},
	// What go test says of a test and of a package.
	{regexp.MustCompile(`\(\d+\.\d\ds\)`), `(S)`},
	{regexp.MustCompile(`(example\.com/sum)\\t\d+\.\d\d\ds`), `$1\tS`},
	// What the API server says of an object, and where.
	{regexp.MustCompile(`\be2e-[a-z0-9]{6}\b`), `NAMESPACE`},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), `UID`},
	{regexp.MustCompile(`(resourceVersion\W+)\d+`), `${1}VERSION`},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), `TIME`},
	// A call that is made again after a crash may find that it has done what it was to do, and then has no difference to
	// show.
	{regexp.MustCompile(`"outcome": "(un)?changed"(,\s+"diff": "([^"\\]|\\.)*")?`), `"outcome": "changed or unchanged"`},
}

// process is the id of a command in a workspace. A start that a crash has kept from coming about uses one up.
var process = regexp.MustCompile(`\bp\d+\b`)

// agent is the name of a chat that the model of chat root has started. It follows from the call, and so from a UID.
var agent = regexp.MustCompile(`\broot-[0-9a-f]{10}\b`)

// transcript is what a chat's people and its model read of it, in order: who speaks, texts, calls, results and files.
// Calls and commands are numbered as they come up. Attempts, times and usage are left out.
func transcript(messages []v1beta1.ChatMessage) string {
	t := transcribing{calls: map[string]string{}}
	for i := range messages {
		t.message(i, &messages[i].Spec)
	}
	text := t.String()
	for _, mask := range masks {
		text = mask.what.ReplaceAllString(text, mask.by)
	}
	agents := map[string]string{}
	text = agent.ReplaceAllStringFunc(text, func(id string) string { return numbered(agents, "agent", id) })
	commands := map[string]string{}
	return process.ReplaceAllStringFunc(text, func(id string) string { return numbered(commands, "command", id) })
}

// numbered is what stands for an id: its number among those that came up.
func numbered(known map[string]string, what, id string) string {
	if known[id] == "" {
		known[id] = fmt.Sprintf("%s %d", what, len(known)+1)
	}
	return known[id]
}

// transcribing is a transcript that is being written down.
type transcribing struct {
	strings.Builder

	calls map[string]string
}

func (t *transcribing) message(i int, m *v1beta1.ChatMessageSpec) {
	fmt.Fprintf(t, "# %d %s", i, m.Role)
	if g := m.Generation; g != nil {
		fmt.Fprintf(t, " %s", g.Outcome)
		if g.Workspace != nil {
			fmt.Fprintf(t, " %s", indented(g.Workspace))
		}
	}
	t.WriteByte('\n')
	if m.Content != "" {
		fmt.Fprintln(t, m.Content)
	}
	for j := range m.Parts {
		t.part(&m.Parts[j])
	}
}

func (t *transcribing) part(p *v1beta1.MessagePart) {
	switch {
	case p.Text != nil:
		fmt.Fprintf(t, "%s: %s\n", p.Type, *p.Text)
	case p.ToolCall != nil:
		fmt.Fprintf(t, "%s %s: %s\n", t.call(p.ToolCall.ID), p.ToolCall.Name, reindented(p.ToolCall.Input))
	case p.ToolResult != nil:
		r := p.ToolResult
		fmt.Fprintf(t, "result of %s %s (error: %t): %s\n", t.call(r.ID), r.Name, r.IsError, reindented(r.Output))
	case p.File != nil:
		content, err := p.File.Content()
		fmt.Fprintf(t, "file %s %s: %q %v\n", p.File.Name, p.File.MediaType, content, err)
	default:
		fmt.Fprintf(t, "%s\n", p.Type)
	}
}

func (t *transcribing) call(id string) string { return numbered(t.calls, "call", id) }

func indented(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return reindented(string(raw))
}

// reindented is a JSON document, a field a line; any other text is as it is.
func reindented(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", " ") != nil {
		return text
	}
	return b.String()
}

// isGolden compares the transcript of a chat with a golden file.
func (w *world) isGolden(chat, file string) {
	w.t.Helper()
	path, got := filepath.Join("testdata", file), transcript(w.history(chat))
	if *update {
		check.OK(w.t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	check.OK(w.t, err)
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		w.t.Errorf("the transcript differs from %s, -want +got\n%s", path, diff)
	}
}
