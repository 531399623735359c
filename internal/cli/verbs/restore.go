// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/kube/backup"
)

func newRestore(o *options) *cobra.Command {
	var files []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "restore -f FILE|DIR [CHAT...]",
		Short: "Restore chats from a backup",
		Long: "Restores the chats of a backup with their messages and approvals, and creates the ChatModelConfigs, " +
			"ChatClasses, ChatQuotas and ConfigMaps of the backup that do not exist. A backup is what kubectl get prints as " +
			"YAML or JSON, or a folder of such files. Each object is restored into its namespace, or that of --namespace. " +
			"With the names of chats, only these and their families are restored, without settings. Repeat an interrupted " +
			"restore to continue it. Takes the verb restore on chats (ClusterRole parley-restore).",
		Example: "  kubectl get chats,chatmessages,toolapprovals,chatmodelconfigs,chatclasses -o yaml > backup.yaml\n" +
			"  kubectl chat restore -f backup.yaml\n  kubectl chat restore -f backup/ -n other triage",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 {
				return usageError{errors.New("name the backup with -f: a file, a folder, or - for standard input")}
			}
			b, err := readBackup(o.In, files)
			if err != nil {
				return err
			}
			s, err := o.connect()
			if err != nil {
				return err
			}
			return restoreBackup(cmd.Context(), s, b, backup.Options{Namespace: *o.config.Namespace, Names: args,
				DryRun: dryRun, Now: time.Now})
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file or folder of the backup, or - for standard input; it can be repeated")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false,
		"check the backup, and have the API server check its chats; restore nothing")
	return cmd
}

// readBackup reads the files of a backup. In folders, it reads those that are named like YAML or JSON.
func readBackup(in io.Reader, paths []string) (*backup.Backup, error) {
	b := &backup.Backup{}
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			isBackup := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) || file == path
			if err != nil || entry.IsDir() || !isBackup {
				return err
			}
			opened, err := os.Open(file)
			if err != nil {
				return err
			}
			defer func() { _ = opened.Close() }()
			return b.Add(opened)
		})
		if path == "-" {
			err = b.Add(in)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the backup %s: %w", path, err)
		}
	}
	if len(b.Chats) == 0 {
		return nil, fmt.Errorf("there is no Chat in %s", strings.Join(paths, ", "))
	}
	return b, nil
}

// restoreBackup prints a line for each object.
func restoreBackup(ctx context.Context, s *session, b *backup.Backup, options backup.Options) error {
	report, err := backup.Restore(ctx, s.Client, b, options)
	if report == nil {
		return err
	}
	failed := 0
	for _, r := range report.Results {
		outcome := "restored"
		switch {
		case r.Err != nil:
			failed++
			outcome = "failed: " + r.Err.Error()
		case r.Unchanged:
			outcome = "unchanged"
		case r.Kind == "Chat":
			outcome += ", with " + render.Plural(r.Messages, "message")
		}
		if options.DryRun {
			outcome += " (dry run)"
		}
		fmt.Fprintf(s.Out, "%s %s in namespace %s %s\n", r.Kind, r.Name, r.Namespace, outcome)
	}
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %s failed, see above", failed, render.Plural(len(report.Results), "object")))
	}
	return err
}
