// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/workspace/agent/process"
)

// diffOptions are those of git diff.
var diffOptions = []string{"--raw", "-z", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--no-color",
	"--ignore-submodules=dirty"}

// files compares the files with the base: first which differ, then the contents of those that are not too large.
func (g *git) files(ctx context.Context, found *changes.Repository) error {
	if err := g.addUntracked(ctx, found); err != nil {
		return err
	}
	differ, err := g.differing(ctx, found)
	if err != nil || len(differ) == 0 {
		return err
	}
	return g.diff(ctx, found, differ)
}

// addUntracked lets git diff see untracked files. To add all files would have git run in submodules, with their own
// configuration.
func (g *git) addUntracked(ctx context.Context, found *changes.Repository) error {
	paths, err := g.untracked(ctx, found)
	if err != nil || paths == "" {
		return err
	}
	err = g.command(ctx, g.own, paths, discard, "add", "--intent-to-add", "--ignore-errors", "--pathspec-from-file=-",
		"--pathspec-file-nul")
	if failed, ok := errors.AsType[*process.ExitError](err); ok && failed.Code == 1 { // The others were added.
		found.Error, err = firstLine(err), nil
	}
	return err
}

// untracked are the paths of untracked files, each with a zero byte. Other repositories are none.
func (g *git) untracked(ctx context.Context, found *changes.Repository) (string, error) {
	var paths strings.Builder
	err := g.command(ctx, g.own, "", func(out io.Reader) error {
		for in, n := bufio.NewReader(out), 0; ; n++ {
			path, err := field(in)
			switch {
			case errors.Is(err, io.EOF) && path == "":
				return nil
			case err != nil:
				return err
			case n >= maxEntries:
				found.Omitted++
			case !strings.HasSuffix(path, "/"):
				paths.WriteString(path + "\x00")
			}
		}
	}, "ls-files", "-z", "--others", "--exclude-standard")
	return paths.String(), err
}

// entry is a line of git diff --raw.
type entry struct {
	status changes.Status
	// pieces is how many diffs it has: a file that becomes a link is deleted and added.
	pieces         int
	mode, oldID    string
	path, formerly string
}

var statuses = map[byte]changes.Status{'A': changes.Added, 'D': changes.Deleted, 'R': changes.Renamed}

// readEntry reads an entry whose first field is read.
func readEntry(first string, in *bufio.Reader) (e entry, err error) {
	fields := strings.Fields(first)
	if len(fields) != 5 {
		return entry{}, fmt.Errorf("git diff: %.40q is not understood", first)
	}
	e = entry{status: changes.Modified, pieces: 1, mode: fields[1], oldID: fields[2]}
	kind := fields[4][0]
	if status, ok := statuses[kind]; ok {
		e.status = status
	}
	switch kind {
	case 'T':
		e.pieces = 2
	case 'U':
		e.pieces = 0
	case 'R', 'C':
		if e.formerly, err = field(in); err != nil {
			return entry{}, err
		}
	}
	e.path, err = field(in)
	return e, err
}

// field reads text up to a zero byte.
func field(in *bufio.Reader) (string, error) {
	text, err := in.ReadString(0)
	if err != nil {
		return "", fmt.Errorf("reading the answer of git: %w", err)
	}
	return strings.TrimSuffix(text, "\x00"), nil
}

// differing lists what differs, up to the limit of files.
func (g *git) differing(ctx context.Context, found *changes.Repository) (kept []entry, err error) {
	err = g.command(ctx, g.own, "", func(out io.Reader) error {
		for in := bufio.NewReader(out); ; {
			first, err := field(in)
			if errors.Is(err, io.EOF) && first == "" {
				return nil
			}
			var e entry
			if err == nil {
				e, err = readEntry(first, in)
			}
			switch {
			case err != nil:
				return err
			case g.review.files == 0:
				found.Omitted++
			default:
				g.review.files--
				kept = append(kept, e)
			}
		}
	}, append(append([]string{"diff"}, diffOptions...), "--no-renames", found.Base, "--")...)
	return kept, err
}

// diff compares the contents of what differs.
func (g *git) diff(ctx context.Context, found *changes.Repository, differ []entry) error {
	sizes, err := g.sizes(ctx, differ)
	if err != nil {
		return err
	}
	args := append(append([]string{"diff"}, diffOptions...), "--numstat", "-p", "--binary",
		"--full-index", "--find-renames", found.Base, "--")
	compared := 0
	for _, e := range differ {
		if note := g.obstacle(e, sizes[e.oldID]); note != "" {
			found.Files = append(found.Files, changes.File{Path: e.path, Status: e.status, Note: note})
			continue
		}
		args = append(args, e.path)
		compared++
	}
	if compared == 0 {
		return nil
	}
	return g.command(ctx, g.own, "", func(out io.Reader) error { return g.parse(found, out) }, args...)
}

// obstacle is why a file is not compared: git would read all of it into memory, or fail for all files.
func (g *git) obstacle(e entry, oldSize int64) string {
	if oldSize > maxContent {
		return "the file is larger than 1 MiB"
	}
	if !strings.HasPrefix(e.mode, "100") {
		return ""
	}
	name := filepath.Join(g.path, e.path)
	if info, err := g.review.root.Lstat(name); err == nil && info.Size() > maxContent {
		return "the file is larger than 1 MiB"
	}
	file, err := g.review.root.OpenFile(name, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return firstLine(err)
	}
	_ = file.Close() // It was only opened.
	return ""
}

// sizes are those of the files before.
func (g *git) sizes(ctx context.Context, differ []entry) (map[string]int64, error) {
	var ids bytes.Buffer
	for _, e := range differ {
		if strings.Trim(e.oldID, "0") != "" {
			ids.WriteString(e.oldID + "\n")
		}
	}
	sizes := map[string]int64{}
	if ids.Len() == 0 {
		return sizes, nil
	}
	err := g.command(ctx, g.own, ids.String(), func(out io.Reader) error {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			id, size, _ := strings.Cut(lines.Text(), " ")
			sizes[id], _ = strconv.ParseInt(size, 10, 64) // Submodules have none here.
		}
		return nil
	}, "cat-file", "--batch-check=%(objectname) %(objectsize)")
	return sizes, err
}
