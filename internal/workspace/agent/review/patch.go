// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"parley.dev/parley/api/changes"
)

// newFile begins the diff of a file. No line of a content begins with it: those have a character in front.
var newFile = []byte("diff --git ")

// parse reads what git diff writes with --raw, --numstat, -z and -p: entries, numbers of lines, and the diffs in the
// order of the entries.
func (g *git) parse(found *changes.Repository, out io.Reader) error {
	in := bufio.NewReaderSize(out, 64<<10)
	entries, counts, err := readSummary(in)
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := changes.File{Path: e.path, OldPath: e.formerly, Status: e.status}
		count := counts[e.path]
		file.Added, file.Removed, file.Binary = count.added, count.removed, count.binary
		var diff []byte
		whole := true
		for range e.pieces {
			diff, whole = readPiece(in, diff, whole)
		}
		g.review.keep(&file, string(diff), whole)
		found.Files = append(found.Files, file)
	}
	return discard(in)
}

// count is how many lines are added and removed.
type count struct {
	added, removed int
	binary         bool
}

// readSummary reads up to the first diff.
func readSummary(in *bufio.Reader) (entries []entry, counts map[string]count, err error) {
	counts = map[string]count{}
	for {
		first, err := field(in)
		switch {
		case errors.Is(err, io.EOF), err == nil && first == "":
			return entries, counts, nil
		case err != nil:
		case strings.HasPrefix(first, ":"):
			var e entry
			e, err = readEntry(first, in)
			entries = append(entries, e)
		default:
			err = readCount(first, in, counts)
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// readCount reads the numbers of lines of a file.
func readCount(first string, in *bufio.Reader, counts map[string]count) (err error) {
	fields := strings.SplitN(first, "\t", 3)
	if len(fields) != 3 {
		return fmt.Errorf("git diff: %.40q is not understood", first)
	}
	path := fields[2]
	if path == "" { // The old path and the new one follow.
		if _, err = field(in); err == nil {
			path, err = field(in)
		}
	}
	added, invalid := strconv.Atoi(fields[0]) // Binary files have - there.
	removed, _ := strconv.Atoi(fields[1])
	counts[path] = count{added, removed, invalid != nil}
	return err
}

// readPiece reads the diff of a file, adds it to those before, and reports whether all of it is kept. The rest is cut
// at a line.
func readPiece(in *bufio.Reader, diff []byte, whole bool) ([]byte, bool) {
	for first, begin := true, true; ; first = false {
		next, _ := in.Peek(len(newFile)) // There may be less.
		if len(next) == 0 || begin && !first && bytes.Equal(next, newFile) {
			return diff, whole
		}
		piece, _ := in.ReadSlice('\n') // There is something; a line may be longer than the buffer.
		if whole = whole && len(diff)+len(piece) <= maxDiff; whole {
			diff = append(diff, piece...)
		} else {
			diff = diff[:bytes.LastIndexByte(diff, '\n')+1]
		}
		begin = bytes.HasSuffix(piece, []byte("\n"))
	}
}

// Patch is the whole of a repository as a patch for git apply. It begins with what is not in it, which git ignores.
func Patch(r changes.Repository) string {
	var omitted, patch strings.Builder
	for _, file := range r.Files {
		if file.Note != "" {
			fmt.Fprintf(&omitted, "Not in this patch: %q: %s\n", file.Path, file.Note)
			continue
		}
		patch.WriteString(file.Diff)
	}
	if r.Error != "" {
		fmt.Fprintf(&omitted, "Not complete: %s\n", r.Error)
	}
	if r.Omitted > 0 {
		fmt.Fprintf(&omitted, "Not in this patch: %d more files\n", r.Omitted)
	}
	return omitted.String() + patch.String()
}
