// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatlist_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/test/kit/check"
)

// sections are the headings of docs/reference/stream.md that describe what events carry.
var sections = map[string]any{
	"message":                stream.MessageCommitted{},
	"note":                   stream.Note{},
	"note_deleted":           stream.NoteDeleted{},
	"message_part":           stream.MessagePart{},
	"queue_update":           stream.QueueUpdate{},
	"status":                 stream.Status{},
	"error":                  stream.Error{},
	"retry":                  stream.Retry{},
	"requires_action":        stream.RequiresAction{},
	"preview_reset":          stream.PreviewReset{},
	"history_reset":          struct{}{},
	"deleted":                struct{}{},
	"closing":                stream.Closing{},
	"added, modified":        stream.Summary{},
	"deleted, from the list": stream.Deleted{},
	"synced":                 struct{}{},
	"list_reset":             struct{}{},
}

// fields are what a value of a type is encoded as: true for a field that may be absent. What the page has as a whole is
// described elsewhere.
func fields(t reflect.Type, prefix string, page, into map[string]bool) map[string]bool {
	for i := range t.NumField() {
		name, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		inner, at := t.Field(i).Type, prefix+name
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice {
			inner, at = inner.Elem(), at+"[]"
		}
		_, whole := page[at]
		if inner.Kind() == reflect.Struct && !whole && strings.Contains(inner.PkgPath(), "parley/api/stream") {
			fields(inner, at+".", page, into)
			continue
		}
		into[prefix+name] = strings.Contains(rest, "omit")
	}
	return into
}

var field = regexp.MustCompile("`([a-zA-Z.\\[\\]]+)`(\\??)")

// documented are the fields in the first columns of a section's table.
func documented(section string) map[string]bool {
	found := map[string]bool{}
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range field.FindAllStringSubmatch(cells[1], -1) {
			found[match[1]] = match[2] != ""
		}
	}
	return found
}

// constants are the values of a file's constants whose names begin with a prefix.
func constants(t *testing.T, file, prefix string) (values []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	check.OK(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			check.OK(t, err)
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("no constants %s in %s", prefix, file)
	}
	return values
}

func TestDocsMatchEventsAndFields(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/stream.md")
	check.OK(t, err)
	written := map[string]string{}
	for _, section := range strings.Split(string(page), "\n#### ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n##")
		written[heading] = text
	}
	for heading, data := range sections {
		text, ok := written[heading]
		if !ok {
			t.Errorf("there is no section %q", heading)
			continue
		}
		page := documented(text)
		check.Equal(t, fmt.Sprintf("section %q, true for what may be absent", heading), fields(reflect.TypeOf(data),
			"", page, map[string]bool{}), page)
		delete(written, heading)
	}
	for heading := range written {
		t.Errorf("section %q is about no event", heading)
	}
	for _, name := range constants(t, "../../../api/stream/event.go", "Event") {
		if _, ok := sections[name]; !ok && !strings.Contains("added, modified", name) {
			t.Errorf("no section is about event %s", name)
		}
	}
	for _, reason := range append(constants(t, "../../../api/stream/closing.go", "Closing"),
		constants(t, "../refusal/refusal.go", "")...) {
		check.Contains(t, string(page), "`"+reason+"`")
	}
}

func TestTheDocumentationHasEveryTypeOfPart(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/stream.md")
	check.OK(t, err)
	_, row, _ := strings.Cut(string(page), "| `part.type` |")
	row, _, _ = strings.Cut(row, "\n")
	for _, part := range constants(t, "../../../api/stream/parts/parts.go", "") {
		check.Contains(t, row, "`"+part+"`")
	}
}
