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
	// comparedLines of a text are looked for, one by one.
	comparedLines = 200
	// samePlaces is how many lines of a text count that are the same, such as closing brackets.
	samePlaces = 4
	// shownLines and shownBytes bound what is shown of the nearest text, and shownLine each line of it.
	shownLines, shownBytes, shownLine = 15, 2 << 10, 200
	// similar is how much of a line another one must share to be shown.
	similar = 0.5
)

// disregards are what texts differ in although people take them for the same, from little to much.
var disregards = []struct {
	what string
	// without is a line without it.
	without func(string) string
}{
	{"line endings", func(l string) string { return strings.TrimSuffix(l, "\r") }},
	{"whitespace at the ends of lines", func(l string) string { return strings.TrimRightFunc(l, unicode.IsSpace) }},
	{"indentation", strings.TrimSpace},
	{"whitespace", func(l string) string { return strings.Join(strings.Fields(l), "") }},
}

// nearest says where in a content a text nearly occurs, and how the two differ if in nothing but whitespace. Its cost
// grows with the sum of both.
func nearest(content, text string) string {
	if len(content) > comparedBytes {
		return fmt.Sprintf("The file has %s, too much to look for what is like it.", size(int64(len(content))))
	}
	lines, wanted := strings.Split(content, "\n"), strings.Split(text, "\n")
	for _, d := range disregards {
		if first, ok := without(lines, wanted, d.without); ok {
			return fmt.Sprintf("This is the same but for %s:\n%s\nTake it exactly as it is in the file.", d.what,
				excerpt(lines, first, len(wanted)))
		}
	}
	first, ok := bySameLines(lines, wanted)
	if !ok {
		first, ok = byLikeliestLine(lines, wanted)
	}
	if !ok {
		return "Nothing in the file is like it. Read the file again."
	}
	return fmt.Sprintf("The nearest is:\n%s", excerpt(lines, first, len(wanted)))
}

// without looks for a text when both sides lack something, and returns the index of the first line.
func without(lines, wanted []string, strip func(string) string) (int, bool) {
	needle := stripped(wanted, strip)
	if strings.TrimSpace(needle) == "" {
		return 0, false
	}
	before, _, ok := strings.Cut(stripped(lines, strip), needle)
	return strings.Count(before, "\n"), ok
}

func stripped(lines []string, strip func(string) string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strip(line))
	}
	return b.String()
}

// bySameLines finds the place at which the most lines of a text stand where they would have to.
func bySameLines(lines, wanted []string) (first int, ok bool) {
	at, all := map[string][]int{}, 0
	for i, line := range wanted[:min(len(wanted), comparedLines)] {
		key := strings.TrimSpace(line)
		all += len(key)
		if key != "" && len(at[key]) < samePlaces {
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
	return first, most > 0 && float64(most) >= similar/2*float64(all)
}

// byLikeliestLine finds the line that is most like the longest one of a text.
func byLikeliestLine(lines, wanted []string) (first int, ok bool) {
	longest := 0
	for i, line := range wanted {
		if len(strings.TrimSpace(line)) > len(strings.TrimSpace(wanted[longest])) {
			longest = i
		}
	}
	parts := map[string]bool{}
	for part := range trigrams(wanted[longest]) {
		parts[part] = true
	}
	best := similar
	for i, line := range lines {
		if share := likeness(parts, line); share > best {
			first, best = max(i-longest, 0), share
		}
	}
	return first, best > similar
}

// trigrams are all three bytes of a line that stand together, but for whitespace, of the beginning of a long line.
func trigrams(line string) iter.Seq[string] {
	line = strings.Join(strings.Fields(line[:min(len(line), lineBytes)]), "")
	return func(yield func(string) bool) {
		for i := 0; i+3 <= len(line) && yield(line[i:i+3]); i++ {
		}
	}
}

// likeness is how much of the parts of one line another one shares, from 0 to 1.
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
