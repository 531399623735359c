// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

func newShow(o *options) *cobra.Command {
	all, names, last := false, false, 0
	cmd := &cobra.Command{
		Use:   "show CHAT",
		Short: "Show the conversation",
		Long: "Prints the last 20 messages, or those of --last or --all, with notes at their places, why the last turn " +
			"failed, and what the chat waits for. --names shows the names that edit, delete and promote take. It reads only " +
			"the API server, so a reply that is still streaming is not shown: see tail. -o json prints the events of the " +
			"stream, -o yaml the Chat itself.",
		Example: "  kubectl chat show triage\n  kubectl chat show triage --all | less\n  kubectl chat show triage --last 2 " +
			"--names",
		SuggestFor: []string{"history"},
		Args:       cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 1 || all && cmd.Flags().Changed("last") {
				return usageError{errors.New("--last needs a number of messages from 1 on, and excludes --all")}
			}
			s, err := o.connect(render.FormatName, render.FormatJSON, render.FormatYAML)
			if err != nil {
				return err
			}
			if all {
				last = 0
			}
			return showChat(cmd.Context(), s, args[0], last, names)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show all messages")
	cmd.Flags().IntVar(&last, "last", 20, "how many messages to show")
	cmd.Flags().BoolVar(&names, "names", false, "show the name of each message, and of those that wait in the queue")
	return cmd
}

// showChat prints the last messages of a chat; all for 0.
func showChat(ctx context.Context, s *session, name string, last int, names bool) error {
	if s.Format == render.FormatName || s.Format == render.FormatYAML {
		chat, err := s.Chat(ctx, name)
		if err != nil {
			return err
		}
		return s.Say(render.ChatPrefix+chat.Name, chat, "")
	}
	t, err := s.Snapshot(ctx, name, last)
	if err != nil {
		return err
	}
	return playSnapshot(s, t, last, names)
}

// playSnapshot prints the last messages of a chat; all for 0.
func playSnapshot(s *session, t *cluster.Snapshot, last int, names bool) error {
	before, err := t.Last(last)
	if err != nil {
		return err
	}
	p := s.printer(t.Chat.Name)
	defer p.EndLine()
	if before > 0 && !p.JSON {
		p.Note("%s before this: --all shows them", render.Plural(before, "message"))
	}
	p.Chat.Status = &stream.Status{} // No message shows that a turn was interrupted before its first word.
	if turn := t.Chat.Status.Turn; turn != nil {
		p.Chat.Status.Turn = turn.Message
	}
	p.Names = names
	for _, e := range t.Events {
		if err := p.Event(e, true); err != nil {
			return err
		}
	}
	for _, queued := range t.Chat.Status.Queue {
		if names && !p.JSON {
			p.Note("%s waits in the queue", queued.Name)
		}
	}
	return nil
}

func newTail(o *options) *cobra.Command {
	history := false
	cmd := &cobra.Command{
		Use:   "tail CHAT",
		Short: "Show the conversation as it happens",
		Long: "Shows messages and live replies from now on, or with --history from the first message. It resumes after a " +
			"lost connection; a line reports outages of more than 3 seconds. After an edit or a deletion it reports the " +
			"change and shows the new messages. It ends with ctrl-C, or when the chat is deleted.",
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
	// A caller that may only stream cannot read the chat.
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
