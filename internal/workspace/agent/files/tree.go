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

// maxEntries bounds how many entries of one directory are searched; they are sorted in memory.
const maxEntries = 100_000

// walk searches a directory in the order of paths.
func (s *search) walk(ctx context.Context, dir string, ignore ignoreLines, depth int) error {
	entries, err := s.entries(dir)
	if err != nil || depth > maxDepth {
		s.found.Skipped++
		return nil
	}
	if !s.hidden && slices.ContainsFunc(entries, hasIgnoreFile) {
		ignore = ignore.with(s.dir, dir)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.visit(ctx, path.Join(dir, entry.Name()), entry, ignore, depth); err != nil {
			return err
		}
	}
	return nil
}

func hasIgnoreFile(entry fs.DirEntry) bool {
	return slices.Contains([]string{gitDir, ".gitignore", ".ignore"}, entry.Name())
}

func (s *search) visit(ctx context.Context, name string, entry fs.DirEntry, ignore ignoreLines, depth int) error {
	if !utf8.ValidString(entry.Name()) { // The protocol cannot name it.
		s.found.Skipped++
		return nil
	}
	below := strings.TrimPrefix(name, s.start.path+"/")
	switch {
	case s.isExcluded(name, entry, ignore):
		return nil
	case entry.IsDir() && s.leadsToGlob(below):
		return s.walk(ctx, name, ignore, depth+1)
	case entry.IsDir(), s.content != nil && !entry.Type().IsRegular(), !doublestar.MatchUnvalidated(s.glob, below):
		return nil
	}
	return s.file(ctx, name)
}

func (s *search) isExcluded(name string, entry fs.DirEntry, ignore ignoreLines) bool {
	if entry.Name() == gitDir || s.hidden {
		return entry.Name() == gitDir
	}
	return entry.Name()[0] == '.' || ignore.isIgnored(name, entry.IsDir())
}

// leadsToGlob reports whether paths below a directory can match the glob.
func (s *search) leadsToGlob(dir string) bool {
	return s.globDir == "." || s.globDir == dir || strings.HasPrefix(s.globDir, dir+"/") ||
		strings.HasPrefix(dir, s.globDir+"/")
}

// entries of a directory, in the order of the paths below them.
func (s *search) entries(dir string) ([]fs.DirEntry, error) {
	file, err := s.dir.root.OpenFile(dir, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return nil, err
	}
	defer closeRead(file)
	entries, err := file.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.found.Truncated = s.found.Truncated || len(entries) > maxEntries
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortKey(a), sortKey(b)) })
	return entries, nil
}

// sortKey sorts a directory like the paths below it.
func sortKey(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}
