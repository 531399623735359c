// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

func newDiff(o *options) *cobra.Command {
	var stat, names, patch bool
	cmd := &cobra.Command{
		Use:   "diff CHAT [PATH...]",
		Short: "Show what is changed in the workspace",
		Long: "Shows the commits and changed files of the Git repositories in the workspace, and other new files, or only " +
			"those at the paths, relative to the directory of the workspace. --patch prints the changes of one repository for " +
			"git apply; a path names it if there are several. Needs get on workspaces/changes (ClusterRole " +
			"parley-chat-user).",
		Example: "  kubectl chat diff triage --stat\n  kubectl chat diff triage --patch > triage.patch",
		Args:    cobra.MinimumNArgs(1),
		RunE: asCaller(o, func(ctx context.Context, s *session, args []string) error {
			switch {
			case stat && names || patch && (stat || names):
				return usageError{errors.New("--stat, --name-only and --patch exclude each other")}
			case patch:
				return printPatch(ctx, s, args)
			case stat:
				return showChanges(ctx, s, args, render.Stat)
			case names:
				return showChanges(ctx, s, args, render.Names)
			}
			return showChanges(ctx, s, args, render.Diffs)
		}, render.FormatJSON),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "show a table of the files")
	cmd.Flags().BoolVar(&names, "name-only", false, "show the names of the files")
	cmd.Flags().BoolVar(&patch, "patch", false, "print a patch for git apply")
	return cmd
}

func showChanges(ctx context.Context, s *session, args []string, as render.ChangesAs) error {
	return onGateway(ctx, s, func(n client.Namespace) error {
		found, err := client.GetChanges(ctx, n, args[0])
		if err != nil {
			return fmt.Errorf("reading the changes of chat %s: %w", args[0], err)
		}
		if len(args) > 1 {
			selectPaths(found, args[1:])
		}
		if s.Format != "" {
			return render.PrintJSON(s.Out, found)
		}
		return render.PrintChanges(s.Out, s.ErrOut, found, as)
	})
}

// selectPaths keeps the files at the paths and below.
func selectPaths(found *changes.Changes, paths []string) {
	isOther := func(dir string) func(changes.File) bool {
		return func(file changes.File) bool {
			return !slices.ContainsFunc(paths, func(at string) bool {
				return strings.HasPrefix(path.Join("/", dir, file.Path)+"/", strings.TrimSuffix(path.Join("/", at), "/")+"/")
			})
		}
	}
	for i := range found.Repositories {
		r := &found.Repositories[i]
		r.Files = slices.DeleteFunc(r.Files, isOther(r.Path))
	}
	found.Files = slices.DeleteFunc(found.Files, isOther("."))
	found.Repositories = slices.DeleteFunc(found.Repositories, func(r changes.Repository) bool {
		return len(r.Files) == 0 && r.Error == ""
	})
}

func printPatch(ctx context.Context, s *session, args []string) error {
	if len(args) > 2 || s.Format != "" {
		return usageError{errors.New("--patch takes one path at most, that of a Git repository, and no -o")}
	}
	repository := ""
	if len(args) == 2 {
		repository = path.Clean(args[1])
	}
	return onGateway(ctx, s, func(n client.Namespace) error {
		patch, err := client.GetPatch(ctx, n, args[0], repository)
		if err != nil {
			return fmt.Errorf("reading the patch of chat %s: %w", args[0], err)
		}
		if bytes.HasPrefix(patch, []byte("Not ")) {
			fmt.Fprintln(s.ErrOut, "The patch is not complete: its first lines say what is missing.")
		}
		if _, err := exactly(s.Out).Write(patch); err != nil {
			return fmt.Errorf("writing the patch: %w", err)
		}
		return nil
	})
}

// exactly returns what writes to an output without escapes, unless a person sees it at a terminal.
func exactly(to io.Writer) io.Writer {
	if screen, ok := to.(*terminal.Screen); ok && !terminal.OnTerminal(to) {
		return screen.To
	}
	return to
}
