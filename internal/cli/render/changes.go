// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"path"
	"strings"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/cli/terminal"
)

// ChangesAs is how changes are printed.
type ChangesAs string

// The ways: with diffs, as a table of files, and their names alone.
const (
	Diffs ChangesAs = "diff"
	Stat  ChangesAs = "stat"
	Names ChangesAs = "name-only"
)

// PrintChanges prints what is changed in a workspace, and what is missing there to errOut.
func PrintChanges(out, errOut io.Writer, found *changes.Changes, as ChangesAs) error {
	to, remarks := terminal.NewScreen(out), terminal.NewScreen(errOut)
	table := newTable(out, "STATUS", "LINES", "FILE")
	files := func(dir string, files []changes.File, omitted int) {
		for i := range files {
			printFile(to, table, dir, &files[i], as)
		}
		if omitted > 0 {
			remarks.Line("%s more in %s", Plural(omitted, "changed file"), dir)
		}
	}
	for i := range found.Repositories {
		r := &found.Repositories[i]
		if as == Diffs {
			printState(to, r)
		}
		if r.Error != "" {
			remarks.Line("%s: %s", r.Path, r.Error)
		}
		files(r.Path, r.Files, r.Omitted)
	}
	files(".", found.Files, found.Omitted)
	for _, note := range found.Notes {
		remarks.Line("%s", note)
	}
	if as == Stat {
		return table.Flush()
	}
	return nil
}

// printState prints what git status and git log would.
func printState(to *terminal.Screen, r *changes.Repository) {
	branch := strings.TrimSuffix(r.Branch+"..."+r.Upstream, "...")
	to.Line("%s: %s since %.12s", strings.TrimSpace(r.Path+" "+branch), Plural(len(r.Commits), "commit"), r.Base)
	for _, commit := range r.Commits {
		to.Line("  %s %s", commit.ID, commit.Subject)
	}
	if r.MoreCommits {
		to.Line("  and earlier ones")
	}
}

func printFile(to *terminal.Screen, table Table, dir string, file *changes.File, as ChangesAs) {
	name := terminal.EscapeLine(path.Join(dir, file.Path))
	switch as {
	case Names:
		fmt.Fprintln(to, name)
		return
	case Stat:
		lines := fmt.Sprintf("+%d -%d", file.Added, file.Removed)
		if file.Binary {
			lines = "binary"
		}
		table.Row(string(file.Status), lines, name)
		return
	}
	to.Diff(file.Diff)
	switch {
	case file.Note != "":
		to.Line("%s %s: %s", file.Status, name, file.Note)
	case file.Binary:
		to.Line("%s %s: it is binary", file.Status, name)
	}
}
