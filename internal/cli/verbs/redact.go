// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/kube/redact"
)

func newRedact(o *options) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:   "redact CHAT [FILE|-]",
		Short: "Remove a text, such as a pasted password, from a chat",
		Long: "Replaces a text in all messages of a chat and of its sub-chats, in their titles and previews, also where it " +
			"is escaped as in JSON or URLs, or encoded as in a Secret. Nothing is answered again. Recordings of model calls, " +
			"approvals, and rejected or superseded messages that have the text are deleted. The text comes from FILE or " +
			"standard input, without the line break at its end; on a terminal it is asked for and not shown. The chats must " +
			"not be answering. Takes the verb redact on chats (ClusterRole parley-redact).",
		Example: "  kubectl chat redact triage\n  kubectl chat redact triage password.txt --dry-run",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := textToRemove(o, append(args, "-")[1])
			if err != nil {
				return err
			}
			if err := o.checkOutput(); err != nil {
				return err
			}
			s, err := o.connectWith(func(cfg *rest.Config) { cfg.QPS = -1 })
			if err != nil {
				return err
			}
			client, err := dynamic.NewForConfig(s.dialer.Config)
			if err != nil {
				return fmt.Errorf("creating a client: %w", err)
			}
			r := &cluster.Redaction{Namespace: s.Namespace, Client: client, Text: text, DryRun: dryRun}
			return redactFamily(cmd.Context(), s, r, args[0])
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be changed, and change nothing")
	return cmd
}

// textToRemove reads the text from a file, or from standard input for "-".
func textToRemove(o *options, file string) (*redact.Text, error) {
	read := func() ([]byte, error) { return readInput(o, file, v1beta1.MaxContentBytes) }
	if in, ok := o.In.(*os.File); ok && file == "-" && terminal.OnTerminal(o.In) {
		fmt.Fprint(o.ErrOut, "Text to remove (not shown): ")
		defer fmt.Fprintln(o.ErrOut)
		read = func() ([]byte, error) { return term.ReadPassword(int(in.Fd())) }
	}
	raw, err := read()
	if err != nil {
		return nil, fmt.Errorf("reading the text to remove: %w", err)
	}
	text, err := redact.New(strings.TrimRight(string(raw), "\r\n"))
	if err != nil {
		return nil, usageError{err}
	}
	return text, nil
}

// redactFamily removes the text from a chat and its sub-chats, and reads them again.
func redactFamily(ctx context.Context, s *session, r *cluster.Redaction, name string) error {
	family, err := idleFamily(ctx, s, name, r.DryRun)
	if err != nil {
		return err
	}
	objects := reportRedactions(s, r)
	var left []string
	for _, member := range family {
		if err := r.Chat(ctx, member.Name); err != nil {
			return err
		}
		if r.DryRun {
			continue
		}
		more, err := r.Left(ctx, member.Name)
		if err != nil {
			return err
		}
		left = append(left, more...)
	}
	if !r.DryRun {
		if err := stillIdle(ctx, s, family); err != nil {
			return err
		}
	}
	switch {
	case len(left) > 0:
		return fmt.Errorf("the text is still in %s: these fields cannot be changed, so delete the objects",
			strings.Join(left, ", "))
	case len(objects) == 0:
		return errors.New("the text was not found")
	}
	return nil
}

// idleFamily returns a chat and its sub-chats; an error if one is being answered, unless busy ones are wanted, too.
func idleFamily(ctx context.Context, s *session, name string, busy bool) ([]*v1beta1.Chat, error) {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return nil, err
	}
	list, err := s.Chats().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the sub-chats of chat %s: %w", name, err)
	}
	family := append(tree.Of(list.Items).Descendants(chat), chat)
	for _, member := range family {
		if member.Status.Phase.HasTurn() && !busy {
			return nil, conflictError{fmt.Sprintf("chat %s is being answered: wait, or stop it with %s", member.Name,
				s.command("interrupt", member.Name))}
		}
	}
	return family, nil
}

// stillIdle fails if a chat of the family was answered since it was read: the answer may have the text.
func stillIdle(ctx context.Context, s *session, family []*v1beta1.Chat) error {
	for _, before := range family {
		chat, err := s.Chat(ctx, before.Name)
		if err != nil {
			return err
		}
		if chat.Status.Phase.HasTurn() || chat.Status.History.Version != before.Status.History.Version {
			return conflictError{fmt.Sprintf("chat %s was answered meanwhile, so that the text may be in it again: run the "+
				"command again once it is idle", chat.Name)}
		}
	}
	return nil
}

// reportRedactions has each object with the text printed, and returns their set.
func reportRedactions(s *session, r *cluster.Redaction) map[string]bool {
	redacted, deleted, objects := "redacted", "deleted", map[string]bool{}
	if r.DryRun {
		redacted, deleted = "would be redacted", "would be deleted"
	}
	r.Report = func(object string, fields []string) {
		objects[object] = true
		if len(fields) == 0 {
			_, _ = fmt.Fprintf(s.Out, "%s %s\n", object, deleted)
			return
		}
		_, _ = fmt.Fprintf(s.Out, "%s %s: %s\n", object, redacted, strings.Join(slices.Compact(fields), ", "))
	}
	return objects
}
