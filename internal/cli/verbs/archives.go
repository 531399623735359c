// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/kube/backup"
)

// newArchives is a noun, because the verb archive sets spec.archived of a chat in the cluster.
func newArchives(o *options) *cobra.Command {
	var created string
	list := func(ctx context.Context, s *session, _ []string) error { return listArchives(ctx, s, created) }
	cmd := &cobra.Command{
		Use:   "archives",
		Short: "List, read, restore, redact and delete chats that were archived before their deletion",
		Long: "Lists the chats of the namespace that were written to object storage before their retention deleted them. " +
			"The gateway reads the storage, and asks the API server whether you may list, get or delete chats/archive. " +
			"Chats in the cluster that are archived (kubectl chat archive) are not among them: see kubectl chat ls --all.",
		Example: "  kubectl chat archives\n  kubectl chat archives list --created 2026-11\n" +
			"  kubectl chat archives get triage\n  kubectl chat archives delete triage",
		Args: cobra.NoArgs,
		RunE: asCaller(o, list, render.FormatJSON, render.FormatYAML),
	}
	listing := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List archived chats",
		Long:    "Lists the archived chats of the namespace, by the day on which they were created.",
		Example: "  kubectl chat archives list --created 2026-11\n  kubectl chat archives list -o json",
		Args:    cobra.NoArgs, RunE: cmd.RunE}
	for _, c := range []*cobra.Command{cmd, listing} {
		c.Flags().StringVar(&created, "created", "", "only chats that were created in this year, in this month or on this "+
			"day, such as 2026-11")
	}
	cmd.AddCommand(listing,
		&cobra.Command{Use: "get CHAT[/UID]", Short: "Print an archived chat",
			Long: "Prints the Chat and its sub-chats, with their ChatMessages and ToolApprovals, as a List in JSON, as " +
				"kubectl get prints them.",
			Example: "  kubectl chat archives get triage\n  kubectl chat archives get triage/0f8c1d7e > triage.json",
			Args:    cobra.ExactArgs(1),
			RunE:    asCaller(o, getArchive, render.FormatJSON)},
		&cobra.Command{Use: "restore CHAT[/UID]", Short: "Restore an archived chat",
			Long: "Restores an archived chat and its sub-chats into the cluster, as kubectl chat restore does. No model is " +
				"asked again. The archive stays. Takes the verb restore on chats (ClusterRole parley-restore).",
			Example: "  kubectl chat archives restore triage\n  kubectl chat archives restore triage/0f8c1d7e",
			Args:    cobra.ExactArgs(1), RunE: asCaller(o, restoreArchive)},
		newRedactArchive(o),
		&cobra.Command{Use: "delete CHAT[/UID]", Short: "Delete an archived chat",
			Long:    "Deletes the archive of a chat from the object storage. That cannot be undone.",
			Example: "  kubectl chat archives delete triage\n  kubectl chat archives delete triage/0f8c1d7e",
			Args:    cobra.ExactArgs(1), RunE: asCaller(o, deleteArchive)},
	)
	return cmd
}

// asCaller returns the RunE of a verb for which the gateway uses the token of the caller for its question to the
// API server, so that it must be one of the API server.
func asCaller(o *options, run func(context.Context, *session, []string) error, outputs ...string,
) func(*cobra.Command, []string) error {
	return o.connected(func(ctx context.Context, s *session, args []string) error {
		s.dialer.AsCaller = true
		return run(ctx, s, args)
	}, outputs...)
}

// onGateway does something with what the gateway has of the namespace.
func onGateway(ctx context.Context, s *session, do func(client.Namespace) error) error {
	gateway, err := s.dialer.Dial(ctx)
	if err != nil {
		return err
	}
	defer gateway.Close()
	return do(gateway.Way.Namespace(s.Namespace))
}

func listArchives(ctx context.Context, s *session, created string) error {
	return onGateway(ctx, s, func(n client.Namespace) error {
		all := []client.Archive{}
		for next, more := "", true; more; more = next != "" {
			page, err := n.ListArchives(ctx, "", created, next)
			if err != nil {
				return fmt.Errorf("listing the archives: %w", err)
			}
			all, next = append(all, page.Archives...), page.Continue
		}
		switch {
		case s.Format != "":
			return render.PrintAll(&s.Output, all)
		case len(all) == 0:
			fmt.Fprintf(s.ErrOut, "No archives found in namespace %s.\n", s.Namespace)
			return nil
		}
		return render.PrintArchives(s.Out, all)
	})
}

// findArchive is the archive that an argument names: CHAT, if there is one of that name, or CHAT/UID.
func findArchive(ctx context.Context, n client.Namespace, argument string) (*client.Archive, error) {
	chat, uid, _ := strings.Cut(argument, "/")
	page, err := n.ListArchives(ctx, chat, "", "")
	if err != nil {
		return nil, fmt.Errorf("looking for the archive of chat %s: %w", chat, err)
	}
	found := map[string]*client.Archive{}
	for i := range page.Archives {
		if a := &page.Archives[i]; uid == "" || a.UID == uid {
			found[a.UID] = a
		}
	}
	switch uids := slices.Sorted(maps.Keys(found)); len(uids) {
	case 0:
		return nil, cli.NotFoundError("there is no archive of chat " + argument)
	case 1:
		return found[uids[0]], nil
	default:
		return nil, usageError{fmt.Errorf("there are archives of several chats %s: name one of %s/%s", chat, chat,
			strings.Join(uids, ", "+chat+"/"))}
	}
}

func getArchive(ctx context.Context, s *session, args []string) error {
	return onGateway(ctx, s, func(n client.Namespace) error {
		a, err := findArchive(ctx, n, args[0])
		if err != nil {
			return err
		}
		return n.ReadArchive(ctx, a.Chat, a.UID, s.Out)
	})
}

func restoreArchive(ctx context.Context, s *session, args []string) error {
	return onGateway(ctx, s, func(n client.Namespace) error {
		a, err := findArchive(ctx, n, args[0])
		if err != nil {
			return err
		}
		var b backup.Backup
		from, to := io.Pipe()
		go func() { to.CloseWithError(n.ReadArchive(ctx, a.Chat, a.UID, to)) }()
		if err := b.Add(from); err != nil {
			return err
		}
		return restoreBackup(ctx, s, &b, backup.Options{Namespace: s.Namespace, Now: time.Now,
			File: func(ctx context.Context, chat *v1beta1.Chat, digest string) error {
				return restoreFile(ctx, n, a, chat.Name, digest)
			}})
	})
}

// restoreFile uploads a file of an archive for the restored chat. One that the archive lacks was missing before.
func restoreFile(ctx context.Context, n client.Namespace, a *client.Archive, chat, digest string) error {
	content, err := client.ReadArchivedFile(ctx, n, a.Chat, a.UID, digest)
	if no, ok := errors.AsType[*client.Error](err); ok && no.Status == http.StatusNotFound {
		return nil
	}
	if err == nil {
		_, err = client.UploadFile(ctx, n, chat, content)
	}
	return err
}

func deleteArchive(ctx context.Context, s *session, args []string) error {
	return onGateway(ctx, s, func(n client.Namespace) error {
		a, err := findArchive(ctx, n, args[0])
		if err != nil {
			return err
		}
		if err := n.DeleteArchive(ctx, a.Chat, a.UID); err != nil {
			return fmt.Errorf("deleting the archive of chat %s: %w", a.Chat, err)
		}
		fmt.Fprintf(s.Out, "archive of chat %s deleted\n", a.Chat)
		return nil
	})
}
