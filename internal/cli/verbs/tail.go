// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

func newTail(o *options) *cobra.Command {
	history := false
	cmd := &cobra.Command{
		Use:   "tail CHAT",
		Short: "Show what is said in a chat, as it is said",
		Long: "Shows what is said in a chat from now on, as it is said. A lost connection is resumed where it was. " +
			"Ends with ctrl-C, or when the chat is deleted.",
		Example: "  kubectl chat tail triage\n  kubectl chat tail triage --history",
		Args:    cobra.ExactArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			err := tailChat(ctx, s, args[0], history)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}, render.FormatJSON),
	}
	cmd.Flags().BoolVar(&history, "history", false, "begin with what was said so far")
	return cmd
}

func tailChat(ctx context.Context, s *session, chat string, history bool) error {
	// who may only listen cannot look
	if err := s.CheckChat(ctx, chat); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	from, err := openSource(ctx, s)
	if err != nil {
		return err
	}
	defer from.Close()
	p := s.printer(chat)
	defer p.EndLine()
	if !history {
		p.NotesFrom = -1
	}
	for e, err := range from.Follow(ctx, s.Namespace, chat, history, p.OutOfReach) {
		if err == nil {
			err = p.Event(e, true)
		}
		if err != nil {
			return terminal.DuringOutput(err)
		}
	}
	return nil
}
