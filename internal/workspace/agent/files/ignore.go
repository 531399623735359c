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
	// gitDir is Git's own directory, or the file that says where that is.
	gitDir = ".git"
	// ignoreBytes bounds an ignore file.
	ignoreBytes = 256 << 10
)

// ignoreFiles of a directory, from the weakest to the strongest.
var ignoreFiles = []string{gitDir + "/info/exclude", ".gitignore", ".ignore"}

// ignoring is what the ignore files on the way to a directory say, from the weakest line to the strongest. Libraries
// differ from Git: go-git does in [!a], a/b**c and a negation below a/**, and smaller ones in more.
type ignoring []ignoreLine

// ignoreLine is one line of an ignore file, as gitignore(5) has it.
type ignoreLine struct {
	// dir is where the file is, relative to the workspace's directory: empty, or with a slash at its end.
	dir string
	// glob matches paths below dir if it is anchored, and else names.
	glob     string
	anchored bool
	// plain reports whether the glob is nothing but a name.
	plain bool
	// onlyDirs and negated are what a slash at the end and an exclamation mark at the beginning say.
	onlyDirs, negated bool
}

// with adds the ignore files of a directory.
func (g ignoring) with(d *directory, dir string) ignoring {
	prefix := ""
	if dir != "." {
		prefix = dir + "/"
	}
	for _, name := range ignoreFiles {
		text, ok := d.ignoreFile(path.Join(dir, name))
		if !ok {
			continue
		}
		lines := parseIgnore(prefix, text)
		g = append(slices.Clip(g), lines...)
	}
	return g
}

// ignoreFile reads an ignore file, if there is one.
func (d *directory) ignoreFile(name string) (string, bool) {
	p, err := d.resolve(name)
	if err != nil || p.info == nil || !p.info.Mode().IsRegular() {
		return "", false
	}
	file, _, err := d.openRegular(p.path)
	if err != nil {
		return "", false
	}
	defer closeRead(file)
	text, err := io.ReadAll(io.LimitReader(file, ignoreBytes))
	return string(text), err == nil
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
		// Braces are no alternatives there. All below a directory is not the directory itself.
		l.glob = strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`).Replace(line)
		if l.anchored && strings.HasSuffix(l.glob, "/**") {
			l.glob += "/*"
		}
		l.plain = !strings.ContainsAny(l.glob, `*?[\`)
		lines = append(lines, l)
	}
	return lines
}

// trimSpaces takes spaces from the end of a line, but for those that a backslash keeps.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if trimmed != line && strings.HasSuffix(trimmed, `\`) && !strings.HasSuffix(trimmed, `\\`) {
		return trimmed + " "
	}
	return trimmed
}

// ignored reports whether the last line that matches says so. Whoever asks has not come here through a directory that
// is ignored.
func (g ignoring) ignored(name string, isDir bool) bool {
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
