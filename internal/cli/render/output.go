// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render prints chats and what is said in them. It knows no cluster, and writes where it is told to.
package render

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/printable"
)

// What --output can be besides nothing, which is for people.
const (
	FormatJSON = "json"
	FormatYAML = "yaml"
	FormatName = "name"
	FormatWide = "wide"
)

// Output is where a verb prints, and in which of its forms: one of the above.
type Output struct {
	genericiooptions.IOStreams

	Format string
}

// The resources as they are named in what verbs print.
const (
	ChatPrefix     = "chat.parley.dev/"
	MessagePrefix  = "chatmessage.parley.dev/"
	ApprovalPrefix = "toolapproval.parley.dev/"
)

// Say prints what became of a request: the object's name and some words for people, or what programs ask for.
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

// shaped is an object with its kind, which a typed client leaves out, and without what only the API server reads.
func shaped(object any) any {
	meta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
	}
	switch object := object.(type) {
	case *v1alpha1.Chat:
		object.TypeMeta, object.ManagedFields = meta("Chat"), nil
	case *v1alpha1.ChatMessage:
		object.TypeMeta, object.ManagedFields = meta("ChatMessage"), nil
	case *v1alpha1.ToolApproval:
		object.TypeMeta, object.ManagedFields = meta("ToolApproval"), nil
	case *v1alpha1.ChatDebugStep:
		object.TypeMeta, object.ManagedFields = meta("ChatDebugStep"), nil
	case *v1alpha1.ChatList:
		object.TypeMeta = meta("ChatList")
		for i := range object.Items {
			shaped(&object.Items[i])
		}
	}
	return object
}

// PrintJSON prints an object in one line. A decoder reads it exactly as it is, and a terminal only shows it.
func PrintJSON(to io.Writer, object any) error {
	encoder := json.NewEncoder(printable.JSONWriter(to))
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
