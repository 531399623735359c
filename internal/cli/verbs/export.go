// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/cli/render"
)

// What an export can be.
const (
	outMarkdown = "md"
	outLines    = "jsonl"
)

func newExport(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "export CHAT",
		Short: "Print all that was said in a chat, as Markdown or JSON Lines",
		Long: "Prints a chat with all its messages and notes, in order: as Markdown for people (-o md, the default), or as " +
			"JSON Lines with all that a message is (-o jsonl), which kubectl chat import reads. The same chat is always " +
			"printed in the same way.",
		Example: "  kubectl chat export triage > triage.md\n  kubectl chat export triage -o jsonl > triage.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return exportChat(ctx, s, args[0])
		}, outMarkdown, outLines),
	}
}

func exportChat(ctx context.Context, s *session, name string) error {
	t, err := s.Snapshot(ctx, name, 0)
	if err != nil {
		return err
	}
	children, err := s.Chats().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the sub-chats: %w", err)
	}
	e := render.NewExport(t.Chat, children.Items)
	for _, event := range t.Events {
		if err := e.Add(event); err != nil {
			return err
		}
	}
	if s.Format == outLines {
		return e.PrintLines(s.Out)
	}
	_, err = fmt.Fprint(s.Out, e.Markdown())
	return err
}
