// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// ignoreCases are lines of a .gitignore, and files that Git leaves out or keeps because of them, as "git ls-files -o
// --exclude-standard" of Git 2.39 lists them.
var ignoreCases = map[string]struct {
	lines      string
	left, kept []string
}{
	"a name":                      {"foo", []string{"foo", "a/foo", "b/foo/x"}, []string{"foobar", "a/xfoo"}},
	"a name from the top":         {"/foo", []string{"foo"}, []string{"a/foo"}},
	"a path":                      {"a/foo", []string{"a/foo"}, []string{"foo", "b/a/foo"}},
	"a path from the top":         {"/a/foo", []string{"a/foo"}, []string{"foo", "b/a/foo"}},
	"directories":                 {"foo/", []string{"foo/x", "a/foo/x"}, []string{"b/foo"}},
	"a directory from the top":    {"/foo/", []string{"foo/x"}, []string{"a/foo/x"}},
	"a star":                      {"*.o", []string{"x.o", "a/x.o", ".x.o/y"}, []string{"x.os", "o"}},
	"a star stops at a slash":     {"a/*.o", []string{"a/x.o"}, []string{"a/b/x.o", "b/a/x.o"}},
	"a question mark":             {"fo?", []string{"foo", "a/fox"}, []string{"fo", "fooo"}},
	"one of some characters":      {"fo[ox]", []string{"foo", "fox"}, []string{"foy"}},
	"none of some characters":     {"fo[!ox]", []string{"foy"}, []string{"foo", "fox"}},
	"a range":                     {"f[0-9]", []string{"f0", "f9"}, []string{"fa"}},
	"any directories before":      {"**/foo", []string{"foo", "a/b/foo"}, []string{"xfoo"}},
	"any directories between":     {"a/**/foo", []string{"a/foo", "a/b/c/foo"}, []string{"foo", "b/a/foo"}},
	"all below":                   {"a/**", []string{"a/x", "a/b/c"}, []string{"b/a/x"}},
	"all below, but for one":      {"a/**\n!a/keep", []string{"a/x"}, []string{"a/keep"}},
	"two stars within a name":     {"fo**o", []string{"foo", "foxo"}, []string{"bar"}},
	"two stars within a path":     {"a/fo**o", []string{"a/foxo"}, []string{"a/fo/o"}},
	"kept after all":              {"*.o\n!keep.o", []string{"x.o"}, []string{"keep.o", "a/keep.o"}},
	"the last line counts":        {"!keep.o\n*.o", []string{"keep.o"}, []string{"x"}},
	"not below what is left out":  {"a/\n!a/keep", []string{"a/keep", "a/x"}, []string{"b"}},
	"comments and empty lines":    {"# foo\n\n   \nbar\n#x", []string{"bar"}, []string{"foo", "# foo", "#x"}},
	"escapes":                     {"\\#foo\n\\!bar\n\\*", []string{"#foo", "!bar", "*"}, []string{"foo", "bar", "xx"}},
	"spaces at the end":           {"foo   \nbar\\ ", []string{"foo", "bar "}, []string{"bar"}},
	"spaces within":               {"a b", []string{"a b"}, []string{"a"}},
	"braces are no alternatives":  {"{a,b}", []string{"{a,b}"}, []string{"a", "b"}},
	"escaped braces":              {"\\{a,b\\}", []string{"{a,b}"}, []string{"a"}},
	"lines of Windows":            {"foo\r\nbar/\r\n", []string{"foo", "bar/x"}, []string{"b"}},
	"a byte order mark":           {"\ufefffoo\n", []string{"foo"}, []string{"bar"}},
	"a class that does not end":   {"fo[o\nbar", []string{"bar"}, []string{"foo", "fo[o"}},
	"a backslash at the end":      {"foo\\\nbar", []string{"bar"}, []string{"foo", "foo\\"}},
	"a slash alone":               {"/\nbar", []string{"bar"}, []string{"foo"}},
	"all, but for directories":    {"/*\n!/*/", []string{"foo"}, []string{"a/x"}},
	"all but one, deep":           {"/*\n!/a\n/a/*\n!/a/keep", []string{"foo", "a/x"}, []string{"a/keep"}},
	"upper case":                  {"Foo", []string{"Foo"}, []string{"foo"}},
	"one exclamation mark":        {"*\n!\n!keep", []string{"x"}, []string{"keep"}},
	"no newline and no directory": {"foo/bar/", []string{"foo/bar/x"}, []string{"a/foo/bar/x", "foo/b"}},
}

func TestIgnoreFilesLeaveOutWhatGitDoes(t *testing.T) {
	for name, tt := range ignoreCases {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			w.put(".gitignore", tt.lines)
			for _, file := range slices.Concat(tt.left, tt.kept) {
				w.put(file, "x\n")
			}
			found, err := w.Search(t.Context(), &protocol.SearchRequest{})
			check.OK(t, err)
			slices.Sort(tt.kept)
			check.Equal(t, "files", tt.kept, pathsOf(found))
		})
	}
}

func TestIgnoreFilesOfEveryDirectoryCount(t *testing.T) {
	w := newWorkspace(t)
	w.put(".git/info/exclude", "excluded\nkept-1\n")
	w.put(".gitignore", "*.log\n!kept-1\n/only-top\n")
	w.put("sub/.gitignore", "!kept.log\nlocal\n/anchored\n")
	w.put("sub/.ignore", "!local-2\nmore\n")
	w.put("sub/repo/.git/info/exclude", "of-repo\n")
	for _, name := range []string{"excluded", "kept-1", "x.log", "only-top", "sub/only-top", "sub/x.log", "sub/kept.log",
		"kept.log", "sub/local", "sub/deep/local", "local", "sub/anchored", "sub/deep/anchored", "sub/more", "more",
		"sub/repo/of-repo", "sub/of-repo", "sub/repo/excluded"} {
		w.put(name, "x\n")
	}
	for name, tt := range map[string]struct {
		path string
		want []string
	}{
		"from the top": {"", []string{"kept-1", "local", "more", "sub/deep/anchored", "sub/kept.log", "sub/of-repo",
			"sub/only-top"}},
		"from below": {"sub", []string{"sub/deep/anchored", "sub/kept.log", "sub/of-repo",
			"sub/only-top"}},
		"a file that is left out, by its name": {"sub/local", []string{"sub/local"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := w.Search(t.Context(), &protocol.SearchRequest{Path: tt.path})
			check.OK(t, err)
			check.Equal(t, "files", tt.want, pathsOf(found))
		})
	}
	found, err := w.Search(t.Context(), &protocol.SearchRequest{Hidden: true})
	check.OK(t, err)
	if got := pathsOf(found); len(got) != 18+3 || slices.ContainsFunc(got, func(p string) bool {
		return strings.Contains(p, ".git/")
	}) {
		t.Errorf("with what is hidden found %q", got)
	}
}

func TestIgnoredDirectoryIsSearchableByExplicitPath(t *testing.T) {
	w := newWorkspace(t)
	w.put(".gitignore", "node_modules\n*.o\n")
	w.put("node_modules/a/index.js", "x\n")
	w.put("node_modules/a/x.o", "x\n")
	w.put(".github/ci.yaml", "x\n")
	for path, want := range map[string][]string{"node_modules": {"node_modules/a/index.js"},
		".github": {".github/ci.yaml"}} {
		found, err := w.Search(t.Context(), &protocol.SearchRequest{Path: path})
		check.OK(t, err)
		check.Equal(t, path, want, pathsOf(found))
	}
}

func pathsOf(found *protocol.SearchResponse) (paths []string) {
	for _, m := range found.Matches {
		paths = append(paths, m.Path)
	}
	return paths
}
