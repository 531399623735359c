// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/api/changes"
)

const (
	// maxEntries is how many files and directories are looked at, maxDepth how deep a repository may be, and
	// maxRepositories how many are examined.
	maxEntries, maxDepth, maxRepositories = 20_000, 4, 20

	gitDir = ".git"
	// openQuietly keeps pipes and devices from blocking the agent, or from becoming its terminal.
	openQuietly = syscall.O_NONBLOCK | syscall.O_NOCTTY
)

// tree looks for repositories, and for changed files outside of them. It follows no links, and omits hidden
// directories and those of package managers: HOME is the workspace, so caches are there.
type tree struct {
	root  *os.Root
	since time.Time
	// git is whether to look for repositories.
	git          bool
	entries      int
	repositories []string
	changed      []string
	notes        []string
}

// folder is a directory of the workspace.
type folder struct {
	path  string
	depth int
	// tracked is whether it is in a repository.
	tracked bool
}

func (t *tree) walk() {
	for todo := []folder{{path: "."}}; len(todo) > 0 && t.entries <= maxEntries; todo = todo[1:] {
		todo = append(todo, t.look(todo[0])...)
	}
	slices.Sort(t.repositories)
	slices.Sort(t.changed)
	if t.entries > maxEntries {
		t.notes = append(t.notes, fmt.Sprintf("Only the first %d files and directories were looked at.", maxEntries))
	}
	if len(t.repositories) > maxRepositories {
		t.repositories = t.repositories[:maxRepositories]
		t.notes = append(t.notes, fmt.Sprintf("Only the first %d Git repositories were examined.", maxRepositories))
	}
}

// look looks at the entries of a directory, and returns the directories in it.
func (t *tree) look(at folder) (below []folder) {
	entries, err := t.list(at.path)
	if err != nil {
		t.notes = append(t.notes, fmt.Sprintf("%q was not looked at: %s", at.path, firstLine(err)))
		return nil
	}
	if t.isRepository(entries) {
		t.repositories = append(t.repositories, at.path)
		at.tracked = true
	}
	for _, entry := range entries {
		name := path.Join(at.path, entry.Name())
		if entry.IsDir() && !isCache(name) && (!at.tracked || at.depth < maxDepth) {
			below = append(below, folder{name, at.depth + 1, at.tracked})
		} else if !at.tracked && t.isChanged(name, entry) {
			t.changed = append(t.changed, name)
		}
	}
	return below
}

func (t *tree) list(dir string) ([]fs.DirEntry, error) {
	file, err := t.root.OpenFile(dir, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	entries, err := file.ReadDir(maxEntries - t.entries + 1)
	t.entries += len(entries)
	if err != nil && err != io.EOF { //nolint:errorlint // ReadDir returns it as it is.
		return nil, err
	}
	return entries, nil
}

// isRepository reports whether one of the entries is Git's own directory, or the file that names it.
func (t *tree) isRepository(entries []fs.DirEntry) bool {
	return t.git && slices.ContainsFunc(entries, func(entry fs.DirEntry) bool {
		return entry.Name() == gitDir && (entry.IsDir() || entry.Type().IsRegular())
	})
}

// isHidden reports whether a name of the workspace's directory begins with a dot.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

func isCache(dir string) bool {
	name := path.Base(dir)
	return isHidden(name) || name == "node_modules" || dir == "go/pkg"
}

// isChanged reports whether a file was written, or got its name, since the workspace got its chat.
func (t *tree) isChanged(name string, entry fs.DirEntry) bool {
	info, err := entry.Info()
	if err != nil || !info.Mode().IsRegular() || isHidden(name) {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && !time.Unix(stat.Ctim.Unix()).Before(t.since)
}

// loose examines changed files outside of repositories.
func (r *review) loose(paths []string) {
	kept := paths[:min(len(paths), r.files)]
	r.files -= len(kept)
	r.found.Omitted = len(paths) - len(kept)
	for _, name := range kept {
		file := changes.File{Path: name, Status: changes.Modified}
		if content, err := r.content(&file); err != nil {
			file.Note = firstLine(err)
		} else if file.Status == changes.Added && file.Note == "" {
			r.added(&file, content)
		}
		r.found.Files = append(r.found.Files, file)
	}
}

// content reads a file, and finds out whether it is new.
func (r *review) content(file *changes.File) (string, error) {
	opened, err := r.root.OpenFile(file.Path, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = opened.Close() }() // It was only read.
	var stat unix.Statx_t
	if err := unix.Statx(int(opened.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME|unix.STATX_SIZE, &stat); err != nil {
		return "", fmt.Errorf("looking at the file: %w", err)
	}
	switch {
	case stat.Mask&unix.STATX_BTIME == 0 || time.Unix(stat.Btime.Sec, int64(stat.Btime.Nsec)).Before(r.Since):
		file.Note = "the content before the change is not known"
		return "", nil
	case stat.Size > maxDiff:
		file.Status, file.Note = changes.Added, "the file is larger than 256 KiB"
		return "", nil
	}
	file.Status = changes.Added
	content, err := io.ReadAll(io.LimitReader(opened, maxDiff))
	if err != nil {
		return "", fmt.Errorf("reading the file: %w", err)
	}
	return string(content), nil
}

// added makes the diff of a new file.
func (r *review) added(file *changes.File, content string) {
	if strings.IndexByte(content[:min(len(content), 8000)], 0) >= 0 { // As Git decides it.
		file.Binary, file.Note = true, "the file is binary"
		return
	}
	file.Added = strings.Count(content, "\n")
	var diff strings.Builder
	fmt.Fprintf(&diff, "diff --git %s %s\nnew file mode 100644\n", quoted("a/"+file.Path), quoted("b/"+file.Path))
	if content != "" {
		end := ""
		if !strings.HasSuffix(content, "\n") {
			file.Added++
			end = "\n\\ No newline at end of file\n"
		}
		fmt.Fprintf(&diff, "--- /dev/null\n+++ %s\n@@ -0,0 +1,%d @@\n", quoted("b/"+file.Path), file.Added)
		for line := range strings.Lines(content) {
			diff.WriteString("+" + line)
		}
		diff.WriteString(end)
	}
	r.keep(file, diff.String(), true)
}

// quoted is a path as Git writes it in a diff.
func quoted(name string) string {
	var b strings.Builder
	special := false
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
			continue
		}
		special = true
	}
	if !special {
		return name
	}
	return `"` + b.String() + `"`
}
