// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/stream"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.connect(outJSON)
			if err != nil {
				return err
			}
			err = s.tail(cmd.Context(), args[0], history)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&history, "history", false, "begin with what was said so far")
	return cmd
}

func (s *session) tail(ctx context.Context, chat string, history bool) error {
	// who may only listen cannot look
	if err := s.objects.checkChat(ctx, chat); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	from, err := s.source(ctx)
	if err != nil {
		return err
	}
	defer from.close()
	p := newPrinter(s.options.Out, s.options.ErrOut, s.options.output == outJSON, s.hint(chat))
	defer p.endLine()
	if !history {
		p.notesFrom = -1
	}
	from.onLoss(p.outOfReach)
	return amid(from.follow(ctx, s.objects.namespace, chat, history, nil, func(e stream.Event) (bool, error) {
		return e.Name == stream.EventDeleted, p.event(e, true)
	}))
}
