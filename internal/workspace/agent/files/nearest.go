// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"iter"
	"strings"
	"unicode"

	"parley.dev/parley/internal/text/clip"
)

const (
	// comparedBytes is how much of a file is compared with a text that does not occur: some tens of milliseconds.
	comparedBytes = 4 << 20
	// comparedLines is how many lines of a text are searched, one by one.
	comparedLines = 200
	// maxEqualLines is how many equal lines of a text count, such as closing brackets.
	maxEqualLines = 4
	// shownLines and shownBytes bound the excerpt with the nearest text, and shownLine each line of it.
	shownLines, shownBytes, shownLine = 15, 2 << 10, 200
	// minLikeness is the least likeness of a line that is shown.
	minLikeness = 0.5
)

// differences that people overlook, from small to large.
var differences = []struct {
	name string
	// without removes the difference from a line.
	without func(string) string
}{
	{"line endings", func(l string) string { return strings.TrimSuffix(l, "\r") }},
	{"whitespace at the ends of lines", func(l string) string { return strings.TrimRightFunc(l, unicode.IsSpace) }},
	{"indentation", strings.TrimSpace},
	{"whitespace", func(l string) string { return strings.Join(strings.Fields(l), "") }},
}

// nearest shows where a text nearly occurs in a content, and how the two differ if only in whitespace. Its cost grows
// with the sum of both.
func nearest(content, text string) string {
	if len(content) > comparedBytes {
		return fmt.Sprintf("The file has %s, too much to look for what is like it.", size(int64(len(content))))
	}
	lines, searched := strings.Split(content, "\n"), strings.Split(text, "\n")
	for _, d := range differences {
		if first, ok := findWithout(lines, searched, d.without); ok {
			return fmt.Sprintf("This is the same but for %s:\n%s\nTake it exactly as it is in the file.", d.name,
				excerpt(lines, first, len(searched)))
		}
	}
	first, ok := findByEqualLines(lines, searched)
	if !ok {
		first, ok = findByLongestLine(lines, searched)
	}
	if !ok {
		return "Nothing in the file is like it. Read the file again."
	}
	return fmt.Sprintf("The nearest is:\n%s", excerpt(lines, first, len(searched)))
}

// findWithout finds a text without a difference, and returns the index of its first line.
func findWithout(lines, searched []string, without func(string) string) (int, bool) {
	needle := joinWithout(searched, without)
	if strings.TrimSpace(needle) == "" {
		return 0, false
	}
	before, _, ok := strings.Cut(joinWithout(lines, without), needle)
	return strings.Count(before, "\n"), ok
}

func joinWithout(lines []string, without func(string) string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(without(line))
	}
	return b.String()
}

// findByEqualLines finds where most lines of a text are equal, weighted by their lengths.
func findByEqualLines(lines, searched []string) (first int, ok bool) {
	at, all := map[string][]int{}, 0
	for i, line := range searched[:min(len(searched), comparedLines)] {
		key := strings.TrimSpace(line)
		all += len(key)
		if key != "" && len(at[key]) < maxEqualLines {
			at[key] = append(at[key], i)
		}
	}
	votes, most := map[int]int{}, 0
	for i, line := range lines {
		key := strings.TrimSpace(line)
		for _, offset := range at[key] {
			place := max(i-offset, 0)
			votes[place] += len(key)
			if v := votes[place]; v > most || v == most && place < first {
				first, most = place, v
			}
		}
	}
	return first, most > 0 && float64(most) >= minLikeness/2*float64(all)
}

// findByLongestLine finds the line that is most like the longest one of a text.
func findByLongestLine(lines, searched []string) (first int, ok bool) {
	longest := 0
	for i, line := range searched {
		if len(strings.TrimSpace(line)) > len(strings.TrimSpace(searched[longest])) {
			longest = i
		}
	}
	parts := map[string]bool{}
	for part := range trigrams(searched[longest]) {
		parts[part] = true
	}
	best := minLikeness
	for i, line := range lines {
		if share := likeness(parts, line); share > best {
			first, best = max(i-longest, 0), share
		}
	}
	return first, best > minLikeness
}

// trigrams of the beginning of a line, without whitespace.
func trigrams(line string) iter.Seq[string] {
	line = strings.Join(strings.Fields(line[:min(len(line), lineBytes)]), "")
	return func(yield func(string) bool) {
		for i := 0; i+3 <= len(line) && yield(line[i:i+3]); i++ {
		}
	}
}

// likeness is the share of trigrams that a line has in common with another one, from 0 to 1.
func likeness(parts map[string]bool, line string) float64 {
	all, shared := 0, 0
	for part := range trigrams(line) {
		all++
		if parts[part] {
			shared++
		}
	}
	if all == 0 {
		return 0
	}
	return 2 * float64(min(shared, len(parts))) / float64(all+len(parts))
}

// excerpt shows lines with their numbers.
func excerpt(lines []string, first, count int) string {
	var b strings.Builder
	for i := first; i < min(first+count, len(lines)); i++ {
		if i-first == shownLines || b.Len() > shownBytes {
			fmt.Fprintf(&b, "%6s\t...\n", "")
			break
		}
		fmt.Fprintf(&b, "%6d\t%s\n", i+1, clip.Ellipsis(strings.TrimSuffix(lines[i], "\r"), shownLine))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
