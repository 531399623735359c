// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/text/compose"
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
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return promoteMessage(ctx, s, args[0], args[1], w)
		}, forms...),
	}
	w.addFlags(cmd)
	return cmd
}

func promoteMessage(ctx context.Context, s *session, name, message string, w waiting) error {
	if err := checkQueued(ctx, s, name, message); err != nil {
		return err
	}
	promoted, err := s.Messages().MergePatch(ctx, message, compose.Promotion())
	if err != nil {
		return fmt.Errorf("changing ChatMessage %s: %w", message, err)
	}
	if !w.wait {
		return s.Say(render.MessagePrefix+message, promoted, " promoted")
	}
	promoted, err = settle(ctx, w, "ChatMessage "+message+" to be next", s.Messages().Watch, message,
		func(now *v1alpha1.ChatMessage, note func(string)) (bool, error) {
			if now.Status.State == v1alpha1.MessageCommitted {
				return true, nil
			}
			return cluster.IsReady(now.Status.Conditions, note)
		})
	if err != nil {
		return err
	}
	return s.Say(render.MessagePrefix+message, promoted, " promoted: %s", promoted.Status.State)
}

// checkQueued fails unless the message waits in the chat's queue, and says which do.
func checkQueued(ctx context.Context, s *session, name, message string) error {
	chat, err := s.Chat(ctx, name)
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
