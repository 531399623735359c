// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/hack/gen/markdown"
	"parley.dev/parley/internal/cli/verbs"
)

// CLI renders the page of kubectl chat from its commands.
func CLI() ([]byte, error) {
	root := verbs.NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, "internal/cli/verbs", "kubectl chat")
	fmt.Fprintf(&b, "\n%s\n", strings.ReplaceAll(root.Long, "\n  ", "\n    "))
	var rows [][]string
	for _, verb := range root.Commands() {
		usage := strings.TrimSuffix(verb.Use, " [flags]")
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", markdown.Code(usage), verb.Name()), markdown.Prose(verb.Short)})
	}
	b.WriteString("\n## Verbs\n")
	markdown.Table(&b, []string{"verb", "what it does"}, rows)
	fmt.Fprint(&b, "\n## Flags of all verbs\n\nIn addition to these, each verb has kubectl's own flags.\n")
	flagTable(&b, root.PersistentFlags())
	for _, verb := range root.Commands() {
		section(&b, "##", verb)
		for _, sub := range verb.Commands() {
			section(&b, "###", sub)
		}
	}
	return b.Bytes(), nil
}

// section writes a verb, or one below it.
func section(w io.Writer, heading string, verb *cobra.Command) {
	above := strings.TrimSuffix(verb.CommandPath(), verb.Name())
	fmt.Fprintf(w, "\n%s %s\n\n    %s%s\n\n%s\n", heading, strings.TrimPrefix(verb.CommandPath(), "kubectl chat "), above,
		verb.Use, verb.Long)
	flagTable(w, verb.LocalNonPersistentFlags())
	if verb.Example == "" {
		return
	}
	fmt.Fprint(w, "\nExamples:\n\n")
	for line := range strings.SplitSeq(strings.TrimRight(verb.Example, "\n"), "\n") {
		fmt.Fprintf(w, "    %s\n", strings.TrimPrefix(line, "  "))
	}
}

// flagTable writes the flags that are not kubectl's own.
func flagTable(w io.Writer, flags *pflag.FlagSet) {
	kubectl := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(kubectl)
	var rows [][]string
	flags.VisitAll(func(flag *pflag.Flag) {
		if kubectl.Lookup(flag.Name) != nil || flag.Name == "help" {
			return
		}
		name := markdown.Code("--" + flag.Name)
		if flag.Shorthand != "" {
			name += ", " + markdown.Code("-"+flag.Shorthand)
		}
		value := flag.DefValue
		if value == "[]" {
			value = ""
		}
		if value != "" {
			value = markdown.Code(value)
		}
		rows = append(rows, []string{name, value, markdown.Prose(flag.Usage)})
	})
	markdown.Table(w, []string{"flag", "default", "meaning"}, rows)
}
