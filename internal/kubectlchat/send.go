// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/compose"
)

type sendOptions struct {
	noFollow   bool
	interrupt  bool
	visibility string
	timeout    time.Duration
}

func newSend(o *options) *cobra.Command {
	var so sendOptions
	cmd := &cobra.Command{
		Use:   "send CHAT TEXT...",
		Short: "Send a message to a chat and show the reply, as the model says it",
		Long: "Creates a ChatMessage and shows the reply, as the model says it. TEXT - reads the message from standard " +
			"input. Ends with 0 when the message was answered, with 1 when it failed or was rejected.",
		Example: "  kubectl chat send triage \"And how do I tell it is the CNI?\"\n  kubectl chat send triage --interrupt " +
			"\"Never mind, look at the DNS first\"\n  kubectl logs web-0 | kubectl chat send triage -",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			if text == "-" {
				all, err := io.ReadAll(io.LimitReader(o.In, v1alpha1.MaxContentBytes+1))
				if err != nil {
					return fmt.Errorf("reading the message from standard input: %w", err)
				}
				if text = string(all); len(text) > v1alpha1.MaxContentBytes {
					return fmt.Errorf("standard input has more than the %d bytes that a message can have", v1alpha1.MaxContentBytes)
				}
			}
			s, err := o.connect()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), so.timeout)
			defer cancel()
			return s.send(ctx, args[0], text, so)
		},
	}
	cmd.Flags().BoolVar(&so.noFollow, "no-follow", false, "do not wait for the reply; print the message's name")
	cmd.Flags().BoolVar(&so.interrupt, "interrupt", false,
		"do not wait for the turn under way: stop it, keep what was said, and be next")
	cmd.Flags().StringVar(&so.visibility, "visibility", "",
		"for whom the message is: All, Model (transcripts leave its text out), or People: a note, which no model is told of "+
			"and nobody answers")
	cmd.Flags().DurationVar(&so.timeout, "timeout", time.Hour, "how long to wait for the reply")
	return cmd
}

func (s *session) send(ctx context.Context, chat, text string, so sendOptions) error {
	if err := s.objects.checkChat(ctx, chat); err != nil {
		return err
	}
	if so.noFollow || so.visibility == string(v1alpha1.VisibleToPeople) {
		m, err := s.objects.create(ctx, chat, text, so)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.options.Out, "chatmessage.parley.dev/%s created\n", m.Name)
		return nil
	}
	from, err := s.source(ctx)
	if err != nil {
		return err
	}
	defer from.close()
	return amid(s.sendAndFollow(ctx, from, chat, text, so))
}

func (o objects) create(ctx context.Context, chat, text string, so sendOptions) (*v1alpha1.ChatMessage, error) {
	var whenBusy v1alpha1.WhenBusy
	if so.interrupt {
		whenBusy = v1alpha1.WhenBusyInterrupt
	}
	m, err := o.messages().Create(ctx, compose.Message(o.namespace, chat, "", v1alpha1.ChatMessageSpec{
		Content: text, WhenBusy: whenBusy, Visibility: v1alpha1.MessageVisibility(so.visibility)}))
	if err != nil {
		return nil, fmt.Errorf("creating the message: %w", err)
	}
	return m, nil
}
