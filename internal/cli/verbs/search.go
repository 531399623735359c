// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/render"
)

func newSearch(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "search WORD...",
		Short: "Search in the messages of all chats",
		Long: "Prints the messages of the namespace that have all words, in any case: in texts, calls and their results. " +
			"An argument of several words is a phrase. Messages are printed as they are found. Reasoning, superseded " +
			"messages and archives of deleted chats are not searched. Needs list on chatmessages (ClusterRole " +
			"parley-chat-user).",
		Example: "  kubectl chat search node-7\n  kubectl chat search certificate \"not ready\" -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE:    asCaller(o, search, render.FormatJSON),
	}
}

func search(ctx context.Context, s *session, args []string) error {
	query := make([]string, 0, len(args))
	for _, arg := range args {
		if strings.ContainsAny(arg, " \t") && !strings.Contains(arg, `"`) {
			arg = `"` + arg + `"`
		}
		query = append(query, arg)
	}
	hits, messages := 0, 0
	output := render.NewHitTable(s.Out).Print
	if s.Format != "" {
		output = func(hits []client.Hit) error { return render.PrintAll(&s.Output, hits) }
	}
	err := onGateway(ctx, s, func(n client.Namespace) error {
		for next, more := "", true; more; more = next != "" {
			page, err := client.Search(ctx, n, strings.Join(query, " "), next)
			if err != nil {
				return fmt.Errorf("searching in the messages of namespace %s: %w", s.Namespace, err)
			}
			if err := output(page.Hits); err != nil {
				return err
			}
			hits, messages, next = hits+len(page.Hits), messages+page.Messages, page.Continue
		}
		return nil
	})
	if messages > 0 || err == nil {
		fmt.Fprintf(s.ErrOut, "Found %s in %s.\n", render.Plural(hits, "message"), render.Plural(messages, "message"))
	}
	return err
}
