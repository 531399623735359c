// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// maxEntries bounds the entries of one directory that are looked at; they are sorted in memory.
	maxEntries = 100_000
	// entriesAtOnce are read between two looks at the time.
	entriesAtOnce = 1000
)

// tree walks directories in the order of their paths.
type tree struct{ *search }

func (t *tree) walk(ctx context.Context, dir string, above ignoring, depth int) error {
	entries, err := t.entries(ctx, dir)
	if errors.Is(err, errUnreadable) || depth > maxDepth {
		t.found.Skipped++
		return nil
	}
	if err != nil {
		return err
	}
	ignore := above
	if !t.hidden && slices.ContainsFunc(entries, hasIgnoreFile) {
		ignore = above.with(t.dir, dir)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.visit(ctx, path.Join(dir, entry.Name()), entry, ignore, depth); err != nil {
			return err
		}
	}
	return nil
}

func hasIgnoreFile(entry fs.DirEntry) bool {
	return slices.Contains([]string{gitDir, ".gitignore", ".ignore"}, entry.Name())
}

func (t *tree) visit(ctx context.Context, name string, entry fs.DirEntry, ignore ignoring, depth int) error {
	if !utf8.ValidString(entry.Name()) {
		t.found.Skipped++ // The protocol has no name for it.
		return nil
	}
	if t.leavesOut(name, entry, ignore) {
		return nil
	}
	below := name
	if t.start.path != "." {
		below = strings.TrimPrefix(name, t.start.path+"/")
	}
	if entry.IsDir() {
		if t.leadsToGlob(below) {
			return t.walk(ctx, name, ignore, depth+1)
		}
		return nil
	}
	if doublestar.MatchUnvalidated(t.glob, below) && (t.content == nil || entry.Type().IsRegular()) {
		return t.file(ctx, name)
	}
	return nil
}

func (t *tree) leavesOut(name string, entry fs.DirEntry, ignore ignoring) bool {
	if entry.Name() == gitDir || t.hidden {
		return entry.Name() == gitDir
	}
	return entry.Name()[0] == '.' || ignore.ignored(name, entry.IsDir())
}

// leadsToGlob reports whether paths below a directory can match the glob.
func (t *tree) leadsToGlob(dir string) bool {
	return t.globDir == "." || t.globDir == dir || strings.HasPrefix(t.globDir, dir+"/") ||
		strings.HasPrefix(dir, t.globDir+"/")
}

// errUnreadable means that a directory cannot be read, or is none any more.
var errUnreadable = errors.New("the directory cannot be read")

// entries are those of a directory, in the order of the paths that they lead to.
func (t *tree) entries(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	file, err := t.dir.root.OpenFile(dir, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return nil, errUnreadable
	}
	defer closeRead(file)
	var entries []fs.DirEntry
	for {
		some, err := file.ReadDir(entriesAtOnce)
		entries = append(entries, some...)
		if len(entries) > maxEntries {
			t.found.Truncated, err = true, io.EOF
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, io.EOF):
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortKey(a), sortKey(b)) })
			return entries, nil
		case err != nil:
			return nil, errUnreadable
		}
	}
}

// sortKey sorts a directory where the paths below it stand.
func sortKey(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}
