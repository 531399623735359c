// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render prints chats and their messages. It knows no cluster.
package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// The values of --output. Without one, verbs print for people.
const (
	FormatJSON = "json"
	FormatYAML = "yaml"
	FormatName = "name"
	FormatWide = "wide"
)

// Output is where a verb prints, and the format.
type Output struct {
	genericiooptions.IOStreams

	Format string
}

// The prefixes of names of objects.
const (
	ChatPrefix     = "chat.parley.dev/"
	MessagePrefix  = "chatmessage.parley.dev/"
	ApprovalPrefix = "toolapproval.parley.dev/"
)

// Say prints the result of a verb: the object's name and some words for people, or the object in the format.
func (o *Output) Say(named string, object any, format string, args ...any) error {
	switch o.Format {
	case FormatName:
		fmt.Fprintln(o.Out, named)
		return nil
	case FormatJSON, FormatYAML:
		return o.Print(object)
	}
	fmt.Fprintln(o.Out, named+fmt.Sprintf(format, args...))
	return nil
}

// Print prints an object as JSON in one line, or as a document of YAML.
func (o *Output) Print(object any) error {
	object = shaped(object)
	if o.Format != FormatYAML {
		return PrintJSON(o.Out, object)
	}
	raw, err := yaml.Marshal(object)
	// JSON is YAML, too, and can escape what YAML here cannot.
	if err != nil || printable.Escape(string(raw)) != string(raw) {
		return PrintJSON(o.Out, object)
	}
	fmt.Fprintf(o.Out, "%s", raw)
	return nil
}

// PrintAll prints objects, one document or line each.
func PrintAll[T any](o *Output, objects []T) error {
	for i := range objects {
		if i > 0 && o.Format == FormatYAML {
			fmt.Fprintln(o.Out, "---")
		}
		if err := o.Print(&objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// shaped returns an object with its kind, which a typed client omits, and without managed fields.
func shaped(object any) any {
	switch object := object.(type) {
	case *v1beta1.Chat:
		object.TypeMeta, object.ManagedFields = typeMeta("Chat"), nil
	case *v1beta1.ChatMessage:
		object.TypeMeta, object.ManagedFields = typeMeta("ChatMessage"), nil
	case *v1beta1.ToolApproval:
		object.TypeMeta, object.ManagedFields = typeMeta("ToolApproval"), nil
	case *v1beta1.ChatDebugStep:
		object.TypeMeta, object.ManagedFields = typeMeta("ChatDebugStep"), nil
	case *v1beta1.ChatList:
		object.TypeMeta = typeMeta("ChatList")
		for i := range object.Items {
			shaped(&object.Items[i])
		}
	}
	return object
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: kind}
}

// PrintJSON prints an object in one line, in which control characters are escaped.
func PrintJSON(to io.Writer, object any) error {
	encoder := json.NewEncoder(printable.JSONWriter(to))
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

const maxToolRunes = 200

// OneLine shortens a text to one line.
func OneLine(s string) string { return clip.Ellipsis(flat(s), maxToolRunes) }

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// Plural formats a number of things.
func Plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func costsOf(costs []v1beta1.Cost) string {
	var sums []string
	for _, c := range costs {
		sums = append(sums, cost.String(c.MicroUnits, c.Currency))
	}
	return strings.Join(sums, ", ")
}

// clock formats a time, without the date if it is today.
func clock(at time.Time) string {
	if at = at.Local(); at.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// Table prints rows in columns, whose width stays between flushes.
type Table struct {
	to interface {
		io.Writer
		Flush() error
	}
}

func newTable(to io.Writer, heading ...string) Table {
	t := Table{printers.GetNewTabWriter(to)}
	t.Row(heading...)
	return t
}

// Row adds a row.
func (t Table) Row(cells ...string) { fmt.Fprintln(t.to, strings.Join(cells, "\t")) }

// Flush prints the rows.
func (t Table) Flush() error {
	if err := t.to.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
