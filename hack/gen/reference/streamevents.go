// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"parley.dev/parley/hack/gen/markdown"
)

// streamEvents are the events of both streams, by the prefix of the constants of their names, and the types of their
// data. An event without a type has no fields.
var streamEvents = []struct {
	heading string
	events  []streamEvent
}{
	{"The stream of a chat", []streamEvent{
		{"EventMessage", "MessageCommitted"}, {"EventNote", "Note"}, {"EventNoteDeleted", "NoteDeleted"},
		{"EventMessagePart", "MessagePart"}, {"EventQueueUpdate", "QueueUpdate"}, {"EventStatus", "Status"},
		{"EventError", "Error"}, {"EventRetry", "Retry"}, {"EventRequiresAction", "RequiresAction"},
		{"EventPreviewReset", "PreviewReset"}, {"EventHistoryReset", ""}, {"EventDeleted", ""},
		{"EventClosing", "Closing"},
	}},
	{"The stream of a namespace", []streamEvent{
		{"EventAdded", "Summary"}, {"EventModified", "Summary"}, {"EventDeleted", "Deleted"}, {"EventSynced", ""},
		{"EventListReset", ""}, {"EventClosing", "Closing"},
	}},
}

const refusals = "Every other answer of the gateway is a JSON object `{status, reason, message}`. With " +
	"`Retry-After`, the same request may succeed after that number of seconds."

type streamEvent struct{ constant, data string }

// StreamEvents renders the page of the events of the gateway's streams from their types.
func StreamEvents() ([]byte, error) {
	all := &eventTypes{types: map[string]*ast.StructType{}, seen: map[string]string{}}
	names, err := constants("api/stream/event.go")
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"api/stream", "api/stream/parts"} {
		if err := all.read(dir); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, "api/stream", "Events of streams")
	b.WriteString("\n[Streams](stream.md) explains how to follow and resume a stream. A field with `?` may be absent, " +
		"and times are RFC 3339. Fields that are named as in the resources have the same meaning: [Chat](chat.md), " +
		"[ChatMessage](chatmessage.md).\n")
	for _, stream := range streamEvents {
		fmt.Fprintf(&b, "\n## %s\n", stream.heading)
		for _, event := range stream.events {
			at := slices.IndexFunc(names, func(c constant) bool { return c.name == event.constant })
			if at < 0 {
				return nil, fmt.Errorf("there is no constant %s", event.constant)
			}
			if err := all.section(&b, names[at], event.data); err != nil {
				return nil, err
			}
		}
	}
	err = writeConstants(&b, []constantTable{
		{"Types of parts", "", "api/stream/parts/parts.go", "Type", "`part.type`"},
		{"Reasons of closing", "", "api/stream/closing.go", "", "`reason`"},
		{"Refusals", refusals, "internal/gateway/refusal/refusal.go", "", "`reason`"},
	})
	return b.Bytes(), err
}

// eventTypes are the types of the data of events.
type eventTypes struct {
	types map[string]*ast.StructType
	// seen is the event that has shown the fields of a type.
	seen map[string]string
}

// read adds the types of a package.
func (e *eventTypes) read(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("reading types: %w", err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if fields, ok := spec.Type.(*ast.StructType); ok {
					e.types[spec.Name.Name] = fields
				}
			}
			return true
		})
	}
	return nil
}

// section writes an event.
func (e *eventTypes) section(w io.Writer, event constant, data string) error {
	fmt.Fprintf(w, "\n### %s\n\n%s\n", event.value, markdown.Prose(event.doc))
	rows, err := e.rows("", data, event.value)
	if err != nil {
		return fmt.Errorf("event %s: %w", event.value, err)
	}
	if len(rows) == 0 && data != "" {
		fmt.Fprintf(w, "\nIts fields are those of [`%s`](#%s).\n", e.seen[data], e.seen[data])
	}
	markdown.Table(w, []string{"field", "meaning"}, rows)
	return nil
}

// rows are the fields of a type below a path, unless an event has shown them.
func (e *eventTypes) rows(path, name, event string) (rows [][]string, err error) {
	fields := e.types[name]
	if fields == nil || e.seen[name] != "" {
		return nil, nil
	}
	e.seen[name] = event
	for _, field := range fields.Fields.List {
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		key, options, _ := strings.Cut(tag, ",")
		doc := strings.Join(strings.Fields(field.Doc.Text()), " ")
		if doc == "" {
			return nil, fmt.Errorf("the field %s of %s lacks a comment", field.Names[0].Name, name)
		}
		doc = markdown.Prose(doc)
		if rest, found := strings.CutPrefix(doc, field.Names[0].Name+" "); found {
			doc = markdown.Code(key) + " " + rest
		}
		optional := ""
		if strings.HasPrefix(options, "omit") {
			optional = "?"
		}
		inner, suffix := local(field.Type)
		shown := e.seen[inner]
		if shown != "" {
			doc += fmt.Sprintf(" Its fields are those of [`%s`](#%s).", shown, shown)
		}
		rows = append(rows, []string{markdown.Code(path+key) + optional, doc})
		nested, err := e.rows(path+key+suffix, inner, event)
		if err != nil {
			return nil, err
		}
		rows = append(rows, nested...)
	}
	return rows, nil
}

// local is the name of the type of a field, or of its entries, and what a path has between both.
func local(t ast.Expr) (name, suffix string) {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name, "."
	case *ast.SelectorExpr:
		if t.X.(*ast.Ident).Name == "parts" {
			return t.Sel.Name, "."
		}
	case *ast.StarExpr:
		return local(t.X)
	case *ast.ArrayType:
		name, suffix = local(t.Elt)
		return name, "[]" + suffix
	}
	return "", ""
}
