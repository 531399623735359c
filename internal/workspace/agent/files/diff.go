// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"strconv"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"parley.dev/parley/internal/text/clip"
)

const (
	// maxDiff bounds the diff of one file, maxDiffs those of one answer.
	maxDiff, maxDiffs = 16 << 10, 256 << 10
	// diffedBytes bounds what a diff costs: how much is looked at to number the lines of all its hunks.
	diffedBytes = 512 << 20
	// cutDiff ends a diff that is longer.
	cutDiff = "[the diff is cut here]\n"
)

// unified is what has changed in a file, with three lines of context, cut to a length.
func unified(path string, created bool, before, after string, most int) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '"' }) {
		path = strconv.Quote(path)
	}
	old := path
	if created {
		old = "/dev/null"
	}
	edits := udiff.Lines(before, after)
	cut := false
	if cheap := diffedBytes / max(len(before), 1); len(edits) > cheap {
		edits, cut = edits[:max(cheap, 1)], true
	}
	diff, err := udiff.ToUnified(old, path, before, edits, udiff.DefaultContextLines)
	if err != nil {
		return ""
	}
	if len(diff) > most {
		diff, cut = clip.Bytes(diff, max(most-len(cutDiff), 0)), true
		diff = diff[:strings.LastIndexByte(diff, '\n')+1]
	}
	if cut {
		diff += cutDiff
	}
	return diff
}
