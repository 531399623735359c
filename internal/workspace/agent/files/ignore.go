// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// gitDir is Git's own directory, or the file that names it.
	gitDir = ".git"
	// ignoreBytes bounds an ignore file.
	ignoreBytes = 256 << 10
)

// ignoreFiles of a directory, from the weakest to the strongest.
var ignoreFiles = []string{gitDir + "/info/exclude", ".gitignore", ".ignore"}

// ignoreLines are the lines of the ignore files of a directory and of those above it, from the weakest to the strongest.
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
