// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page has at most this percentage of sentences with more than longSentence words.
const longSentence, mostLong = 25, 15

// generatedPages are written by hack/gen.
var generatedPages = []string{
	"../../docs/reference/errors.md", "../../docs/reference/status.md", "../../docs/reference/tools.md",
}

// allPages is all Markdown of the repository, by its path.
func allPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, root := range []string{
		"../../CHANGELOG.md", "../../CONTRIBUTING.md", "../../README.md", "../../SECURITY.md", "../../docs",
		"../../config/admission/README.md", "../../hack/localcluster/README.md", "../../plugins/headlamp/README.md",
	} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// pages is all Markdown that people write.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := allPages(t)
	for _, path := range generatedPages {
		if _, found := all[path]; !found {
			t.Errorf("there is no %s", path)
		}
		delete(all, path)
	}
	return all
}

var (
	code       = regexp.MustCompile("(?ms)^ *```.*?^ *```$|(?-s:^    .*$)|`[^`]*`|\\]\\([^)\\s]*\\)")
	listItem   = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s+`)
	notProse   = regexp.MustCompile(`^(\s*[|#<]|\s*!\[|    \S)`)
	endOfWords = regexp.MustCompile("[.!?:]\\s+[A-Z\"(`]")
)

// withoutCode removes code and the targets of links. Of code within a sentence it leaves one word.
func withoutCode(text string) string {
	return code.ReplaceAllStringFunc(text, func(found string) string {
		switch found[0] {
		case '`':
			if !strings.HasPrefix(found, "```") {
				return "Code" + strings.Repeat("\n", strings.Count(found, "\n"))
			}
		case ']':
			return "]"
		}
		return strings.Repeat("\n", strings.Count(found, "\n"))
	})
}

// sentences are those of a page's paragraphs and lists, but for tables, headings and fragments of two words.
func sentences(text string) (all []string) {
	var paragraph string
	end := func() {
		for _, sentence := range splitSentences(paragraph) {
			if len(strings.Fields(sentence)) > 2 {
				all = append(all, sentence)
			}
		}
		paragraph = ""
	}
	for line := range strings.Lines(withoutCode(text)) {
		item := listItem.FindString(line)
		if item != "" || strings.TrimSpace(line) == "" || paragraph == "" && notProse.MatchString(line) {
			end()
		}
		if item != "" || !notProse.MatchString(line) {
			paragraph += " " + strings.TrimSpace(line[len(item):])
		}
	}
	end()
	return all
}

func splitSentences(paragraph string) (all []string) {
	for {
		found := endOfWords.FindStringIndex(paragraph)
		if found == nil {
			return append(all, paragraph)
		}
		all, paragraph = append(all, paragraph[:found[0]+1]), paragraph[found[1]-1:]
	}
}

// percentLong is how many in a hundred sentences of the page are long, rounded up.
func percentLong(text string) int {
	all := sentences(text)
	long := 0
	for _, sentence := range all {
		if len(strings.Fields(sentence)) > longSentence {
			long++
		}
	}
	return (100*long + len(all) - 1) / max(len(all), 1)
}

func TestPagesHaveShortSentences(t *testing.T) {
	for path, text := range pages(t) {
		if got := percentLong(text); got > mostLong {
			t.Errorf("%s: %d%% of the sentences have more than %d words, the limit is %d%%", path, got, longSentence, mostLong)
		}
	}
}

func TestSentencesOfAPageAreFound(t *testing.T) {
	got := sentences("# A title of words\n\nOne two `a b`. It\nis: Three [four five](x.md) six.\n\n" +
		"- item of list\n- item two. No one.\n\n| a b c d | e |\n\n```\ncode is no prose. Never.\n```\n")
	want := []string{"One two Code.", "Three [four five] six.", "item of list"}
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := percentLong(strings.Repeat("One two three. ", 3) + strings.Repeat("Word ", longSentence+1)); got != 25 {
		t.Errorf("%d%% are long", got)
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInURL = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the fragments by which GitHub links to the headings of a page.
func anchors(text string) (all []string) {
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		name := notInURL.ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := allPages(t)
	count := 0
	for path, text := range all {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], ":") {
				continue
			}
			count++
			target, anchor, _ := strings.Cut(found[1], "#")
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", path, found[1], err)
			} else if anchor != "" && !slices.Contains(anchors(all[file]), anchor) {
				t.Errorf("%s links to %s, which has no such heading", path, found[1])
			}
		}
	}
	if count < 100 {
		t.Errorf("found only %d links", count)
	}
}
