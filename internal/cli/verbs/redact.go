// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/chat/history/redact"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/terminal"
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
			"not be answering. Archives of the chat are named, and keep the text: see kubectl chat archives redact. Takes the " +
			"verb redact on chats (ClusterRole parley-redact).",
		Example: "  kubectl chat redact triage\n  kubectl chat redact triage password.txt --dry-run",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, _, err := textToRemove(cmd.Context(), o, append(args, "-")[1])
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
			untyped, err := dynamic.NewForConfig(s.dialer.Config)
			if err != nil {
				return fmt.Errorf("creating a client: %w", err)
			}
			r := &cluster.Redaction{Namespace: s.Namespace, Client: untyped, Text: text, DryRun: dryRun}
			err = redactFamily(cmd.Context(), s, r, args[0])
			if err == nil || errors.Is(err, errNoText) || exitCode(err) == exitNotFound { // Its retention may have deleted it.
				noteArchives(cmd.Context(), s, args[0])
			}
			return err
		},
	}
	dryRunFlag(cmd, &dryRun)
	return cmd
}

func dryRunFlag(cmd *cobra.Command, dryRun *bool) {
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "print what would be changed, and change nothing")
}

// errNoText is why nothing was redacted.
var errNoText = errors.New("the text was not found")

// textToRemove reads the text from a file, or from standard input for "-".
func textToRemove(ctx context.Context, o *options, file string) (text *redact.Text, plain string, err error) {
	read := func() ([]byte, error) { return readInput(o, file, v1beta1.MaxContentBytes) }
	if in, ok := terminal.FileOf(o.In); ok && file == "-" && terminal.OnTerminal(in) {
		fmt.Fprint(o.ErrOut, "Text to remove (not shown): ")
		defer fmt.Fprintln(o.ErrOut)
		read = func() ([]byte, error) { return terminal.ReadHidden(ctx, in) }
	}
	raw, err := read()
	if err != nil {
		return nil, "", fmt.Errorf("reading the text to remove: %w", err)
	}
	plain = strings.TrimRight(string(raw), "\r\n")
	if text, err = redact.New(plain); err != nil {
		return nil, "", usageError{err}
	}
	return text, plain, nil
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
		return errNoText
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
	objects := map[string]bool{}
	r.Report = func(object string, fields []string) {
		objects[object] = true
		reportRedaction(s, object, fields, r.DryRun)
	}
	return objects
}

// reportRedaction prints an object with the text, and its fields; none: it is deleted.
func reportRedaction(s *session, object string, fields []string, dryRun bool) {
	would := ""
	if dryRun {
		would = "would be "
	}
	if len(fields) == 0 {
		_, _ = fmt.Fprintf(s.Out, "%s %sdeleted\n", object, would)
		return
	}
	_, _ = fmt.Fprintf(s.Out, "%s %sredacted: %s\n", object, would, strings.Join(slices.Compact(fields), ", "))
}

// newRedactArchive is in the words of redact.
func newRedactArchive(o *options) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{Use: "redact CHAT[/UID] [FILE|-]",
		Short: "Remove a text, such as a pasted password, from an archived chat",
		Long: "Replaces a text in the archive of a chat and of its sub-chats, as kubectl chat redact does in chats of the " +
			"cluster. The text comes from FILE or standard input, without the line break at its end; on a terminal it is " +
			"asked for and not shown. Takes the verb redact on chats (ClusterRole parley-redact).",
		Example: "  kubectl chat archives redact triage\n  kubectl chat archives redact triage password.txt --dry-run",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, text, err := textToRemove(cmd.Context(), o, append(args, "-")[1])
			if err != nil {
				return err
			}
			return asCaller(o, func(ctx context.Context, s *session, args []string) error {
				return onGateway(ctx, s, func(n client.Namespace) error { return redactArchive(ctx, s, n, args[0], text, dryRun) })
			})(cmd, args)
		}}
	dryRunFlag(cmd, &dryRun)
	return cmd
}

func redactArchive(ctx context.Context, s *session, n client.Namespace, name, text string, dryRun bool) error {
	a, err := findArchive(ctx, n, name)
	if err != nil {
		return err
	}
	r, err := n.RedactArchive(ctx, a.Chat, a.UID, text, dryRun)
	if err != nil {
		return fmt.Errorf("redacting the archive of chat %s: %w", a.Chat, err)
	}
	for _, o := range r.Objects {
		reportRedaction(s, o.Object, o.Fields, dryRun)
	}
	if r.Changed && len(r.Objects) == 0 {
		reportRedaction(s, "archives/"+a.Chat, []string{"index entry"}, dryRun)
	}
	switch {
	case len(r.Left) > 0:
		is := "is still"
		if dryRun {
			is = "would still be"
		}
		return fmt.Errorf("the text %s in %s: these fields cannot be changed, so delete the archive", is,
			strings.Join(r.Left, ", "))
	case !r.Changed:
		return errNoText
	}
	return nil
}

// noteArchives prints which archives there are of chats of the name. They keep the text.
func noteArchives(ctx context.Context, s *session, chat string) {
	s.dialer.AsCaller = true
	var page *client.ArchivePage
	err := onGateway(ctx, s, func(n client.Namespace) (err error) {
		page, err = n.ListArchives(ctx, chat, "", "")
		return err
	})
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound {
		return // The gateway has no archive.
	}
	if err != nil {
		fmt.Fprintf(s.ErrOut, "Archives of chat %s were not checked: %v\n", chat, err)
		return
	}
	for i := range page.Archives {
		fmt.Fprintf(s.ErrOut, "An archive of chat %s may have the text, too: %s\n", chat,
			s.command("archives", "redact", chat+"/"+page.Archives[i].UID))
	}
}
