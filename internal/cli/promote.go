// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
)

func newPromote(o *options) *cobra.Command {
	var w waiting
	cmd := &cobra.Command{
		Use:   "promote CHAT MESSAGE",
		Short: "Let a message that waits in the queue be next, and stop the turn under way",
		Long: "Sets spec.whenBusy of the ChatMessage to Interrupt and waits until it is being answered. The turn under " +
			"way is stopped; what was said so far is kept. Ends with 1 if the message does not wait.",
		Example: "  kubectl chat promote triage triage-x7k2p",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.connect(outName, outJSON, outYAML)
			if err != nil {
				return err
			}
			return s.promote(cmd.Context(), args[0], args[1], w)
		},
	}
	w.addFlags(cmd)
	return cmd
}

func (s *session) promote(ctx context.Context, name, message string, w waiting) error {
	if err := s.checkQueued(ctx, name, message); err != nil {
		return err
	}
	promoted, err := s.objects.cutIn(ctx, message)
	if err != nil {
		return err
	}
	if !w.wait {
		return s.options.say(messageNamed+message, promoted, " promoted")
	}
	err = w.until(ctx, "ChatMessage "+message+" to be next", func(ctx context.Context, note func(string)) error {
		return await(ctx, s.objects.messages().Watch, message, func(now *v1alpha1.ChatMessage) (bool, error) {
			promoted = now
			if now.Status.State == v1alpha1.MessageCommitted {
				return true, nil
			}
			return verdict(now.Status.Conditions, note)
		})
	})
	if err != nil {
		return err
	}
	return s.options.say(messageNamed+message, promoted, " promoted: %s", promoted.Status.State)
}

// checkQueued fails unless the message waits in the chat's queue, and says which do.
func (s *session) checkQueued(ctx context.Context, name, message string) error {
	chat, err := s.objects.chat(ctx, name)
	if err != nil {
		return err
	}
	waits := make([]string, 0, len(chat.Status.Queue))
	for _, queued := range chat.Status.Queue {
		if queued.Name == message {
			return nil
		}
		waits = append(waits, queued.Name)
	}
	there := "none does"
	if len(waits) > 0 {
		there = "there is " + strings.Join(waits, ", ")
	}
	return fmt.Errorf("message %s does not wait in the queue of chat %s, which is %s: %s", message, name,
		chat.Status.Phase, there)
}
