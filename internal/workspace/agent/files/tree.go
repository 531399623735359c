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
	entries, ok := s.entries(dir)
	if !ok || depth > maxDepth {
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

// entries of a directory, in the order of the paths below them; false: it cannot be read.
func (s *search) entries(dir string) ([]fs.DirEntry, bool) {
	file, err := s.dir.root.OpenFile(dir, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return nil, false
	}
	defer closeRead(file)
	entries, err := file.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false
	}
	s.found.Truncated = s.found.Truncated || len(entries) > maxEntries
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortKey(a), sortKey(b)) })
	return entries, true
}

// sortKey sorts a directory like the paths below it.
func sortKey(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}

const (
	// gitDir is Git's own directory, or the file that names it.
	gitDir = ".git"
	// ignoreBytes bounds an ignore file.
	ignoreBytes = 256 << 10
)

// ignoreFiles of a directory, from the weakest to the strongest.
var ignoreFiles = []string{gitDir + "/info/exclude", ".gitignore", ".ignore"}

// ignoreLines are the lines of the ignore files of a directory and those above it, from the weakest to the strongest.
// Libraries differ from Git: go-git does in [!a], a/b**c and a negation below a/**, and smaller ones in more.
type ignoreLines []ignoreLine

// ignoreLine is one line of an ignore file; see gitignore(5).
type ignoreLine struct {
	// dir of the file, relative to the workspace's directory: empty, or with a slash at its end.
	dir string
	// glob matches paths below dir if it is anchored, and else names.
	glob     string
	anchored bool
	// plain reports whether the glob is only a name.
	plain bool
	// onlyDirs is a slash at the end, negated an exclamation mark at the beginning.
	onlyDirs, negated bool
}

// with adds the ignore files of a directory.
func (g ignoreLines) with(d *directory, dir string) ignoreLines {
	prefix := ""
	if dir != "." {
		prefix = dir + "/"
	}
	for _, name := range ignoreFiles {
		lines := parseIgnore(prefix, d.ignoreFile(path.Join(dir, name)))
		g = append(slices.Clip(g), lines...)
	}
	return g
}

// ignoreFile reads an ignore file. One that is missing or cannot be read is empty.
func (d *directory) ignoreFile(name string) string {
	file, _, err := d.open(name)
	if err != nil {
		return ""
	}
	defer closeRead(file)
	text, _ := io.ReadAll(io.LimitReader(file, ignoreBytes))
	return string(text)
}

func parseIgnore(dir, text string) (lines []ignoreLine) {
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		l := ignoreLine{dir: dir}
		line, l.negated = strings.CutPrefix(line, "!")
		line, l.onlyDirs = strings.CutSuffix(line, "/")
		l.anchored = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		// Git has no alternatives in braces, and a/** does not match a itself.
		l.glob = strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`).Replace(line)
		if l.anchored && strings.HasSuffix(l.glob, "/**") {
			l.glob += "/*"
		}
		l.plain = !strings.ContainsAny(l.glob, `*?[\`)
		lines = append(lines, l)
	}
	return lines
}

// trimSpaces removes spaces from the end of a line, except one after a backslash.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if trimmed != line && strings.HasSuffix(trimmed, `\`) && !strings.HasSuffix(trimmed, `\\`) {
		return trimmed + " "
	}
	return trimmed
}

// isIgnored reports whether the last matching line ignores a path. No directory above it may be ignored.
func (g ignoreLines) isIgnored(name string, isDir bool) bool {
	for _, l := range slices.Backward(g) {
		if (isDir || !l.onlyDirs) && l.matches(name) {
			return !l.negated
		}
	}
	return false
}

func (l ignoreLine) matches(name string) bool {
	below, ok := strings.CutPrefix(name, l.dir)
	if !ok {
		return false
	}
	if !l.anchored {
		below = path.Base(below)
	}
	if l.plain {
		return below == l.glob
	}
	return doublestar.MatchUnvalidated(l.glob, below)
}
