// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/text/printable"
)

func newSettings(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "settings CHAT",
		Short: "Show which settings of a chat are in force, and who has said them",
		Long: "Prints the settings of a chat that are in force as YAML, each with where it comes from: the chat itself, " +
			"its ChatClass, or the restrictions of that. Unset settings are omitted. With -o json each setting has its " +
			"path, value and source.",
		Example: "  kubectl chat settings triage\n  kubectl chat settings triage -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.connect(outJSON, outYAML)
			if err != nil {
				return err
			}
			return s.settings(cmd.Context(), args[0])
		},
	}
}

// settingsOf are the settings of a chat that are in force.
type settingsOf struct {
	// Chat and ChatClass by name; the class is empty if the chat has none.
	Chat      string `json:"chat"`
	ChatClass string `json:"chatClass,omitempty"`
	// NamespaceClass speaks to every chat of the namespace; empty if none does.
	NamespaceClass string              `json:"namespaceClass,omitempty"`
	Settings       []chatclass.Setting `json:"settings"`
	// Ignored are the fields of the chat that do not count because of its class.
	Ignored []string `json:"ignored,omitempty"`
	// below is true for a sub-chat.
	below bool
}

func (s *session) settings(ctx context.Context, name string) error {
	chat, err := s.objects.chat(ctx, name)
	if err != nil {
		return err
	}
	classes, err := s.objects.client.Classes(s.objects.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the ChatClasses, which say what the chat leaves unsaid: %w", err)
	}
	class, missing := chatclass.Resolve(classes.Items, &chat.Spec)
	if missing != nil {
		return errors.New(missing.Text())
	}
	of := settingsOf{Chat: chat.Name, below: chat.Spec.ParentRef != nil}
	namespace := chatclass.Namespace(classes.Items)
	of.ChatClass, of.NamespaceClass = nameOf(class), nameOf(namespace)
	of.Settings, of.Ignored = chatclass.Explain(chat, class, namespace)
	if s.options.output == "json" {
		return printJSON(s.options.Out, of)
	}
	return s.options.printSettings(&of)
}

func nameOf(class *v1alpha1.ChatClass) string {
	if class == nil {
		return ""
	}
	return class.Name
}

// printSettings prints the settings as one YAML document.
func (o *options) printSettings(of *settingsOf) error {
	heading := "has no ChatClass"
	if of.ChatClass != "" {
		heading = "has ChatClass " + of.ChatClass
	}
	fmt.Fprintf(o.Out, "# Chat %s %s.\n", of.Chat, heading)
	if of.below {
		fmt.Fprintln(o.Out, "# Its workspace, limits.maxSubChats and limits.maxDepth are those of the chat at the top.")
	}
	for _, field := range of.Ignored {
		fmt.Fprintf(o.Out, "# What it says in spec.%s does not count: ChatClass %s does not let it.\n", field, of.ChatClass)
	}
	if len(of.Settings) == 0 {
		fmt.Fprintln(o.Out, "{} # Nothing is set: the defaults of the API are in force.")
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
			fmt.Fprintf(o.Out, "%s:\n", group)
		}
		within = group
		text, err := yamlOf(name, setting.Value)
		if err != nil {
			return err
		}
		fmt.Fprint(o.Out, annotated(text, of.source(setting.From), indent))
	}
	return nil
}

// source is who has said a setting, in words.
func (of *settingsOf) source(from chatclass.Source) string {
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

// yamlOf is a field as YAML. JSON is YAML, too, and can escape what YAML here cannot.
func yamlOf(name string, value any) (string, error) {
	raw, err := yaml.Marshal(map[string]any{name: value})
	if err == nil && unmarked(printable.Escape(string(raw))) == string(raw) {
		return string(raw), nil
	}
	raw, err = json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("printing %s: %w", name, err)
	}
	return name + ": " + unmarked(string(printable.JSON(raw))) + "\n", nil
}

// annotated is a field with a remark above it, indented.
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
