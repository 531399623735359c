// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestFilesAreFoundByName(t *testing.T) {
	w := newWorkspace(t)
	for _, name := range []string{"a.go", "a/b.go", "a/c.ts", "a/d.tsx", "a/deep/er/e.go", "a-b.go", ".hidden/f.go",
		"g", "[h]"} {
		w.put(name, "x\n")
	}
	w.link("a.go", "link.go")
	w.link("..", "a/up")
	w.link("a", "also-a")
	for name, tt := range map[string]struct {
		request protocol.SearchRequest
		want    []string
	}{
		"all, in the order of their paths": {protocol.SearchRequest{}, []string{"[h]", "a-b.go", "a.go", "a/b.go", "a/c.ts",
			"a/d.tsx", "a/deep/er/e.go", "a/up", "also-a", "g", "link.go"}},
		"by an ending": {protocol.SearchRequest{Glob: "**/*.go"}, []string{"a-b.go", "a.go", "a/b.go", "a/deep/er/e.go",
			"link.go"}},
		"at the top":              {protocol.SearchRequest{Glob: "*.go"}, []string{"a-b.go", "a.go", "link.go"}},
		"in a directory":          {protocol.SearchRequest{Glob: "a/*"}, []string{"a/b.go", "a/c.ts", "a/d.tsx", "a/up"}},
		"deep in a directory":     {protocol.SearchRequest{Glob: "a/deep/**"}, []string{"a/deep/er/e.go"}},
		"with a dot before":       {protocol.SearchRequest{Glob: "./a/*.go"}, []string{"a/b.go"}},
		"one of some endings":     {protocol.SearchRequest{Glob: "**/*.{ts,tsx}"}, []string{"a/c.ts", "a/d.tsx"}},
		"below a path":            {protocol.SearchRequest{Path: "a", Glob: "*.go"}, []string{"a/b.go"}},
		"below a link":            {protocol.SearchRequest{Path: "also-a", Glob: "*.go"}, []string{"a/b.go"}},
		"below an absolute path":  {protocol.SearchRequest{Path: w.dir + "/a/deep"}, []string{"a/deep/er/e.go"}},
		"a file":                  {protocol.SearchRequest{Path: "a/b.go"}, []string{"a/b.go"}},
		"a file by another name":  {protocol.SearchRequest{Path: "a/b.go", Glob: "*.ts"}, nil},
		"hidden":                  {protocol.SearchRequest{Glob: "**/f.go", Hidden: true}, []string{".hidden/f.go"}},
		"hidden, without asking":  {protocol.SearchRequest{Glob: "**/f.go"}, nil},
		"with brackets":           {protocol.SearchRequest{Glob: "\\[h\\]"}, []string{"[h]"}},
		"what is not there":       {protocol.SearchRequest{Glob: "nothing"}, nil},
		"where no directory is":   {protocol.SearchRequest{Glob: "no/such/dir/*"}, nil},
		"what names a link's way": {protocol.SearchRequest{Glob: "also-a/*.go"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.Search(t.Context(), &tt.request)
			check.OK(t, err)
			check.Equal(t, "response", responseOf(tt.want, 0), got)
		})
	}
}

func TestLinesAreFoundByContent(t *testing.T) {
	w := newWorkspace(t)
	w.put("a.txt", "one\ntwo\nthree\nFour\ntwo and two")
	w.put("b/windows.txt", "one\r\ntwo\r\n")
	w.put("c.bin", "two\x00")
	w.put("d.txt", "caf\xe9 two\n")
	w.put("z.txt", "\n\nGrüße\n")
	line := func(path string, number int64, text string) protocol.Match {
		return protocol.Match{Path: path, Line: number, Text: text}
	}
	for name, tt := range map[string]struct {
		request protocol.SearchRequest
		want    []protocol.Match
		skipped int
	}{
		"a text": {protocol.SearchRequest{Pattern: "two"}, []protocol.Match{line("a.txt", 2, "two"),
			line("a.txt", 5, "two and two"), line("b/windows.txt", 2, "two"), line("d.txt", 1, "caf\ufffd two")}, 1},
		"the beginning and end of a line": {protocol.SearchRequest{Pattern: "^two$"}, []protocol.Match{
			line("a.txt", 2, "two"), line("b/windows.txt", 2, "two")}, 1},
		"upper and lower case": {protocol.SearchRequest{Pattern: "fOUR", IgnoreCase: true},
			[]protocol.Match{line("a.txt", 4, "Four")}, 1},
		"alternatives, any case": {protocol.SearchRequest{Pattern: "four|GRÜ", IgnoreCase: true},
			[]protocol.Match{line("a.txt", 4, "Four"), line("z.txt", 3, "Grüße")}, 1},
		"nothing over two lines": {protocol.SearchRequest{Pattern: "one\\s+two"}, nil, 1},
		"nothing with a newline": {protocol.SearchRequest{Pattern: "one\ntwo"}, nil, 1},
		"in files of a name": {protocol.SearchRequest{Pattern: "two", Glob: "b/*"},
			[]protocol.Match{line("b/windows.txt", 2, "two")}, 0},
		"in one file": {protocol.SearchRequest{Pattern: "two", Path: "b/windows.txt"},
			[]protocol.Match{line("b/windows.txt", 2, "two")}, 0},
		"empty lines": {protocol.SearchRequest{Pattern: "^$", Path: "z.txt"}, []protocol.Match{line("z.txt",
			1, ""), line("z.txt", 2, "")}, 0},
		"every line": {protocol.SearchRequest{Pattern: ".*", Path: "b"},
			[]protocol.Match{line("b/windows.txt", 1, "one"), line("b/windows.txt", 2, "two")}, 0},
		"a slash that means none": {protocol.SearchRequest{Pattern: `\bthree\b`}, []protocol.Match{line("a.txt", 3,
			"three")}, 1},
		"with lines around it": {protocol.SearchRequest{Pattern: "three", Context: 2}, []protocol.Match{{Path: "a.txt",
			Line: 3, Text: "three", Before: []string{"one", "two"}, After: []string{"Four", "two and two"}}}, 1},
		"with lines around it at the edges": {protocol.SearchRequest{Pattern: "one", Path: "b", Context: 1000},
			[]protocol.Match{{Path: "b/windows.txt", Line: 1, Text: "one", After: []string{"two"}}}, 0},
		"with empty lines around it": {protocol.SearchRequest{Pattern: "Gr", Context: 3}, []protocol.Match{{Path: "z.txt",
			Line: 3, Text: "Grüße", Before: []string{"", ""}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.Search(t.Context(), &tt.request)
			check.OK(t, err)
			check.Equal(t, "response", &protocol.SearchResponse{Matches: tt.want, Skipped: tt.skipped}, got)
		})
	}
}

func TestLongLinesAreShownAroundTheMatch(t *testing.T) {
	w := newWorkspace(t)
	w.put("min.js", strings.Repeat("ä", 1<<19)+"needle"+strings.Repeat("ö", 1<<19)+"\n"+strings.Repeat("x",
		600)+"needle")
	got, err := w.Search(t.Context(), &protocol.SearchRequest{Pattern: "needle"})
	check.OK(t, err)
	if len(got.Matches) != 2 {
		t.Fatalf("found %+v", got)
	}
	for i, want := range []string{"…ää", "…xx"} {
		text := got.Matches[i].Text
		if !strings.HasPrefix(text, want) || !strings.Contains(text, "needle") || len(text) > shownMatch+6 ||
			strings.Contains(text, "\ufffd") {
			t.Errorf("line %d is shown as %q", i+1, text)
		}
	}
}

func TestASearchIsBounded(t *testing.T) {
	w := newWorkspace(t)
	for i := range 12 {
		w.put(fmt.Sprintf("%02d", i), strings.Repeat("x", 200)+"\n")
	}
	for name, tt := range map[string]struct {
		limit, want int
		truncated   bool
	}{
		"fewer than there are":   {11, 11, true},
		"as many as there are":   {12, 12, false},
		"more than there are":    {13, 12, false},
		"as many as are usual":   {0, 12, false},
		"as many as may be, and": {1 << 30, 12, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pattern := range []string{"", "x"} {
				got, err := w.Search(t.Context(), &protocol.SearchRequest{Pattern: pattern, Limit: tt.limit})
				if err != nil || len(got.Matches) != tt.want || got.Truncated != tt.truncated || got.Matches[0].Path != "00" {
					t.Errorf("found %d, truncated %v: %v", len(got.Matches), got.Truncated, err)
				}
			}
		})
	}
	w.put("many", strings.Repeat(strings.Repeat("y", 400)+"\n", 5000))
	got, err := w.Search(t.Context(), &protocol.SearchRequest{Pattern: "y", Limit: 1000, Context: 10})
	check.OK(t, err)
	length := 0
	for _, m := range got.Matches {
		length += len(m.Text) + len(strings.Join(m.Before, "")) + len(strings.Join(m.After, ""))
	}
	if !got.Truncated || length > foundBytes || len(got.Matches) < 100 {
		t.Errorf("found %d with %d bytes, truncated %v", len(got.Matches), length, got.Truncated)
	}
}

func TestWhatCannotBeSearchedIsCounted(t *testing.T) {
	w := newWorkspace(t)
	w.put("text", "needle\n")
	w.put("binary", "\x00needle\n")
	w.put("bad\xff", "needle\n")
	w.put("large", "needle\n")
	check.OK(t, os.Truncate(filepath.Join(w.dir, "large"), protocol.MaxFileBytes+1))
	check.OK(t, syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o644))
	w.socket("socket")
	w.link("text", "link")
	got, err := w.Search(t.Context(), &protocol.SearchRequest{Pattern: "needle"})
	check.OK(t, err)
	want := &protocol.SearchResponse{Matches: []protocol.Match{{Path: "text", Line: 1, Text: "needle"}}, Skipped: 3}
	check.Equal(t, "by content", want, got)
	got, err = w.Search(t.Context(), &protocol.SearchRequest{})
	check.OK(t, err)
	check.Equal(t, "by name", responseOf([]string{"binary", "large", "link", "pipe", "socket", "text"}, 1), got)
}

// responseOf is the response with files that were found by their names.
func responseOf(paths []string, skipped int) *protocol.SearchResponse {
	r := &protocol.SearchResponse{Skipped: skipped}
	for _, path := range paths {
		r.Matches = append(r.Matches, protocol.Match{Path: path})
	}
	return r
}

func TestSearchesThatMakeNoSenseAreRefused(t *testing.T) {
	w := newWorkspace(t)
	w.put(".git/config", "needle")
	_, err := w.Search(t.Context(), &protocol.SearchRequest{Path: "nothing"})
	refused(t, err, protocol.NotFound, "nothing")
	for name, tt := range map[string]struct {
		request protocol.SearchRequest
		says    string
	}{
		"a pattern that is none":   {protocol.SearchRequest{Pattern: "a("}, "missing closing )"},
		"one that closes a group":  {protocol.SearchRequest{Pattern: "a)|(b", IgnoreCase: true}, "unexpected )"},
		"one of another language":  {protocol.SearchRequest{Pattern: `(a)\1`}, "RE2"},
		"one that is too large":    {protocol.SearchRequest{Pattern: "((a{1000}){1000}){1000}"}, "RE2"},
		"one that is too long":     {protocol.SearchRequest{Pattern: strings.Repeat("a", 1025)}, "1024"},
		"a glob that is none":      {protocol.SearchRequest{Glob: "a["}, "not valid"},
		"one that leads out":       {protocol.SearchRequest{Glob: "a/../../*"}, "relative"},
		"an absolute one":          {protocol.SearchRequest{Glob: w.dir + "/*"}, "relative"},
		"one of many alternatives": {protocol.SearchRequest{Glob: strings.Repeat("{a,b}", 4)}, "braces"},
		"a glob that is too long":  {protocol.SearchRequest{Glob: strings.Repeat("a", 1025)}, "1024"},
		"fewer than no lines":      {protocol.SearchRequest{Context: -1}, "negative"},
		"fewer than no matches":    {protocol.SearchRequest{Limit: -1}, "negative"},
		"Git's own directory":      {protocol.SearchRequest{Path: ".git"}, "git"},
		"a file of Git's own":      {protocol.SearchRequest{Path: ".git/config"}, "git"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Search(t.Context(), &tt.request)
			refused(t, err, protocol.BadRequest, tt.says)
		})
	}
}

func TestPathologicalSearchPatternsFinishQuickly(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", strings.Repeat("a", 50_000)+"\n")
	w.put(strings.Repeat("a", 200), "x\n")
	for _, r := range []protocol.SearchRequest{{Pattern: "(a+)+b"}, {Glob: strings.Repeat("a*", 100) + "b"},
		{Glob: strings.Repeat("{a,a*}", 3) + strings.Repeat("*a", 100) + "b"}, {Glob: strings.Repeat("**/", 100) + "*b"}} {
		if got, err := w.Search(t.Context(), &r); err != nil || len(got.Matches) > 0 || got.Truncated {
			t.Errorf("%+v: found %+v, %v", r, got, err)
		}
	}
}

func TestSearchTimeoutReturnsPartialResults(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "x\n")
	w.searchTime = 0
	got, err := w.Search(t.Context(), &protocol.SearchRequest{Pattern: "x"})
	check.OK(t, err)
	check.Equal(t, "response", &protocol.SearchResponse{Truncated: true}, got)
}

func TestDeepDirectoriesAreSearched(t *testing.T) {
	w := newWorkspace(t)
	deep := strings.Repeat("d/", 100)
	w.put(deep+"file", "needle\n")
	got, err := w.Search(t.Context(), &protocol.SearchRequest{})
	check.OK(t, err)
	check.Equal(t, "response", responseOf([]string{deep + "file"}, 0), got)
}

func FuzzSearchFindsWhatALoopFinds(f *testing.F) {
	f.Add("a\nb\n", "a", false)
	f.Add("\n\n\r\n", "^$", true)
	f.Add("x\r\nfoo bar\nfoo", "foo", false)
	f.Add("FOO\nfoo", "(?-i)f", true)
	f.Add("a\xff\nb", "\\xff|b", false)
	f.Fuzz(func(t *testing.T, content, pattern string, ignoreCase bool) {
		c, err := newContentSearch(pattern, ignoreCase)
		if err != nil || c == nil || len(content) > 1000 || strings.Count(content, "\n") > 90 {
			return
		}
		s := &search{content: c, limit: 100, left: foundBytes}
		check.OK(t, s.lines(t.Context(), "file", []byte(content)))
		var want []int64
		for i, line := range strings.SplitAfter(content, "\n") {
			if line != "" && c.re.MatchString(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")) {
				want = append(want, int64(i+1))
			}
		}
		var got []int64
		for _, m := range s.found.Matches {
			got = append(got, m.Line)
		}
		check.Equal(t, "lines with "+pattern, want, got)
	})
}
