// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// Settings holds the settings of a chat that are in force.
type Settings struct {
	// Chat and ChatClass are names; the class is empty if the chat has none.
	Chat      string `json:"chat"`
	ChatClass string `json:"chatClass,omitempty"`
	// NamespaceClass applies to every chat of the namespace; empty if there is none.
	NamespaceClass string `json:"namespaceClass,omitempty"`
	// Settings and their sources.
	Settings []chatclass.Setting `json:"settings"`
	// Ignored lists the fields of the chat that its class overrides.
	Ignored   []string `json:"ignored,omitempty"`
	IsSubChat bool     `json:"-"`
}

// Print prints the settings as one YAML document.
func (of *Settings) Print(out io.Writer) error {
	heading := "has no ChatClass"
	if of.ChatClass != "" {
		heading = "has ChatClass " + of.ChatClass
	}
	fmt.Fprintf(out, "# Chat %s %s.\n", of.Chat, heading)
	if of.IsSubChat {
		fmt.Fprintln(out, "# Its workspace, limits.maxSubChats and limits.maxDepth are those of the chat at the top.")
	}
	for _, field := range of.Ignored {
		fmt.Fprintf(out, "# What it says in spec.%s does not count: ChatClass %s does not let it.\n", field, of.ChatClass)
	}
	if len(of.Settings) == 0 {
		fmt.Fprintln(out, "{} # Nothing is set: the defaults of the API are in force.")
	}
	within := ""
	for i := range of.Settings {
		setting := &of.Settings[i]
		group, name, nested := strings.Cut(setting.Path, ".")
		indent := ""
		if nested {
			indent = "  "
		} else {
			name = group
		}
		if nested && group != within {
			fmt.Fprintf(out, "%s:\n", group)
		}
		within = group
		text, err := yamlOf(name, setting.Value)
		if err != nil {
			return err
		}
		fmt.Fprint(out, annotated(text, of.source(setting.From), indent))
	}
	return nil
}

// source describes where a setting comes from.
func (of *Settings) source(from chatclass.Source) string {
	switch from {
	case chatclass.FromClass:
		return "ChatClass " + of.ChatClass
	case chatclass.FromRestrictions:
		return "restrictions of ChatClass " + of.ChatClass
	case chatclass.FromNamespaceDefault:
		return "ChatClass " + of.NamespaceClass + ", for every chat of the namespace"
	}
	return "the chat"
}

// yamlOf formats a field as YAML, or as JSON, which is YAML, too, where a text has to be escaped.
func yamlOf(name string, value any) (string, error) {
	raw, err := yaml.Marshal(map[string]any{name: value})
	if err == nil && terminal.Unmarked(printable.Escape(string(raw))) == string(raw) {
		return string(raw), nil
	}
	raw, err = json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("printing %s: %w", name, err)
	}
	return name + ": " + terminal.Unmarked(string(printable.JSON(raw))) + "\n", nil
}

// annotated indents a field and adds a remark above it.
func annotated(text, remark, indent string) string {
	var b strings.Builder
	b.WriteString(indent + "# " + remark + "\n")
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" { // An empty line of a text has none.
			b.WriteString(indent)
		}
		b.WriteString(line)
	}
	return b.String()
}
