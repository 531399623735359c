// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review finds what is changed in a workspace, for people. It changes nothing there.
//
// Git repositories are compared by the git of the workspace's image. Who may only write files in the workspace must not
// get commands run by that, so git never reads the configuration of a repository while it looks at files: it works with
// a Git directory of the agent, which has the repository's objects and a copy of its index. So there are no filters, no
// hooks, no external diffs and no file system monitors. Commands that read only commits and refs use the repository's
// own Git directory. Nothing is fetched.
package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxFiles is how many changed files are examined, maxDiff how much of the diff of one is kept, and maxDiffs of all.
	maxFiles, maxDiff, maxDiffs = 500, 256 << 10, 4 << 20
	// maxContent is the size of files that have a diff.
	maxContent = 1 << 20
	// maxCommits is how many commits of a repository are listed.
	maxCommits = 50
	// patience bounds the time for all repositories.
	patience = 20 * time.Second
	// maxError bounds the message of an error.
	maxError = 300
)

// Run runs a program in the workspace: see process.Manager.Capture.
type Run func(ctx context.Context, r *protocol.StartRequest, input string, read func(io.Reader) error) error

// Workspace is what is examined.
type Workspace struct {
	// Directory of the workspace's files, absolute, and State, where temporary files are.
	Directory, State string
	// Since is when the workspace got its chat.
	Since time.Time
	Run   Run

	patience time.Duration // default: patience; tests wait longer
}

// review is one examination.
type review struct {
	Workspace

	root *os.Root
	// files and diffs are what is left of the limits.
	files, diffs int
	// ignored are the repositories that another one ignores.
	ignored map[string]bool
	found   changes.Changes
}

// Changes finds what is changed. The diffs are exact, also where they are not UTF-8.
func (w Workspace) Changes(ctx context.Context) (*changes.Changes, error) {
	root, err := os.OpenRoot(w.Directory)
	if err != nil {
		return nil, fmt.Errorf("opening the workspace's directory: %w", err)
	}
	defer func() { _ = root.Close() }() // It was only read.
	within, cancel := context.WithTimeout(ctx, cmp.Or(w.patience, patience))
	defer cancel()
	r := &review{Workspace: w, root: root, files: maxFiles, diffs: maxDiffs, ignored: map[string]bool{},
		found: changes.Changes{Since: w.Since}}
	t := tree{root: root, since: w.Since, git: r.hasGit(within)}
	t.walk()
	for i, repository := range t.repositories {
		r.repository(within, repository, t.repositories[i+1:])
	}
	r.loose(t.changed)
	r.found.Notes = append(r.found.Notes, t.notes...)
	return &r.found, ctx.Err()
}

// hasGit reports whether there is git, and notes if there is none.
func (r *review) hasGit(ctx context.Context) bool {
	err := r.Run(ctx, &protocol.StartRequest{Argv: []string{"git", "--version"}, Env: []string{r.path()}}, "", discard)
	if err == nil {
		return true
	}
	note := "Git repositories are not examined: " + firstLine(err)
	if refused, ok := errors.AsType[*protocol.Error](err); ok && refused.Code == protocol.CannotStart {
		note = "The image of the workspace has no git, so Git repositories are not examined."
	}
	r.found.Notes = append(r.found.Notes, note)
	return false
}

// path is the variable PATH without what is in the workspace, where a model can put another git.
func (r *review) path() string {
	places := filepath.SplitList(cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"))
	return "PATH=" + strings.Join(slices.DeleteFunc(places, func(place string) bool {
		below, err := filepath.Rel(r.Directory, place)
		return !filepath.IsAbs(place) || err != nil || filepath.IsLocal(below)
	}), ":")
}

func discard(out io.Reader) error {
	_, err := io.Copy(io.Discard, out)
	return err
}

// firstLine is an error for people.
func firstLine(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it takes longer than 20 seconds"
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return clip.Ellipsis(printable.Line(line), maxError)
}

// repository examines a Git repository. Others may be in it.
func (r *review) repository(ctx context.Context, path string, others []string) {
	if r.ignored[path] {
		return
	}
	found := changes.Repository{Path: path}
	g, err := newGit(r, path)
	if err == nil {
		defer g.close()
		err = g.examine(ctx, &found, others)
	}
	if err != nil {
		found.Error = firstLine(err)
	}
	r.found.Repositories = append(r.found.Repositories, found)
}

// keep keeps the diff of a file, up to the limits.
func (r *review) keep(file *changes.File, diff string, whole bool) {
	if !whole {
		file.Note = "the diff is longer than 256 KiB"
	}
	if len(diff) > r.diffs {
		diff, file.Note = "", "the diffs are longer than 4 MiB in all"
	}
	if file.Diff = diff; file.Binary && file.Note != "" { // git apply needs all of it.
		file.Diff = ""
	}
	r.diffs -= len(file.Diff)
}
