// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"maps"
	"strings"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestEditsReplaceTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		file     string
		edits    []protocol.Edit
		want     string
		replaced int
	}{
		"one text":         {"a b c\n", []protocol.Edit{{OldText: "b", NewText: "B"}}, "a B c\n", 1},
		"several lines":    {"a\nb\nc\n", []protocol.Edit{{OldText: "a\nb", NewText: "x"}}, "x\nc\n", 1},
		"one is removed":   {"a\nb\nc\n", []protocol.Edit{{OldText: "b\n"}}, "a\nc\n", 1},
		"no newline after": {"a\nb", []protocol.Edit{{OldText: "b", NewText: "c"}}, "a\nc", 1},
		"all of it":        {"a", []protocol.Edit{{OldText: "a", NewText: ""}}, "", 1},
		"all of them": {"a-a-a\n", []protocol.Edit{{OldText: "a", NewText: "aa", ReplaceAll: true}},
			"aa-aa-aa\n", 3},
		"all of them that overlap": {"aaaaa", []protocol.Edit{{OldText: "aa", NewText: "b", ReplaceAll: true}}, "bba", 2},
		"in their order": {"one\n", []protocol.Edit{{OldText: "one", NewText: "two"}, {OldText: "two", NewText: "three"}},
			"three\n", 2},
		"emptied and filled again": {"a", []protocol.Edit{{OldText: "a"}, {NewText: "b"}}, "b", 1},
		"an empty file is filled":  {"", []protocol.Edit{{NewText: "a\n"}}, "a\n", 0},
		"characters of many bytes": {"Grüße\n", []protocol.Edit{{OldText: "ü", NewText: "ue"}}, "Grueße\n", 1},
		"a byte order mark stays":  {"\ufeffa\n", []protocol.Edit{{OldText: "a", NewText: "b"}}, "\ufeffb\n", 1},
		"lines of Windows, named by newlines": {"a\r\nb\r\nc\r\n", []protocol.Edit{{OldText: "a\nb\n",
			NewText: "x\ny\nz\n"}},
			"x\r\ny\r\nz\r\nc\r\n", 1},
		"lines of Windows, a new one in one": {"a b\r\n", []protocol.Edit{{OldText: "a", NewText: "x\ny"}},
			"x\r\ny b\r\n", 1},
		"lines of Windows, as they are": {"a\r\nb\r\n", []protocol.Edit{{OldText: "a\r\nb\r\n", NewText: "a\nb\n"}},
			"a\nb\n",
			1},
		"lines of Windows, new ones so": {"a\r\nb\r\n", []protocol.Edit{{OldText: "a", NewText: "x\r\ny"}},
			"x\r\ny\r\nb\r\n",
			1},
		"lines of both kinds": {"a\r\nb\nc\n", []protocol.Edit{{OldText: "b\nc", NewText: "x\ny"}}, "a\r\nx\ny\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			w.put("dir/file", tt.file)
			for i := range tt.edits {
				tt.edits[i].Path = "dir/file"
			}
			got, err := w.Edit(t.Context(), "", edits(tt.edits...))
			check.OK(t, err)
			if len(got.Files) != 1 || got.Files[0].Path != "dir/file" || got.Files[0].Replaced != tt.replaced {
				t.Errorf("got %+v", got.Files)
			}
			w.expect(map[string]string{"dir/": "", "dir/file": tt.want})
		})
	}
}

func TestEditsOfSeveralFilesAreShown(t *testing.T) {
	w := newWorkspace(t)
	w.put("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	w.put("b", "x\ny")
	w.put("same", "s\n")
	w.link("b", "link")
	got, err := w.Edit(t.Context(), "", edits(
		protocol.Edit{Path: "a", OldText: "5\n", NewText: "five\n"},
		protocol.Edit{Path: "new/file", NewText: "n\n"},
		protocol.Edit{Path: "link", OldText: "x", NewText: "X"},
		protocol.Edit{Path: w.dir + "/b", OldText: "y", NewText: "Y"},
		protocol.Edit{Path: "empty"},
		protocol.Edit{Path: "same", OldText: "s", NewText: "t"},
		protocol.Edit{Path: "same", OldText: "t", NewText: "s"},
	))
	check.OK(t, err)
	want := []protocol.EditedFile{
		{Path: "a", Replaced: 1,
			Diff: "--- a\n+++ a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{Path: "new/file", Diff: "--- /dev/null\n+++ new/file\n@@ -0,0 +1 @@\n+n\n"},
		{Path: "b", Replaced: 2,
			Diff: "--- b\n+++ b\n@@ -1,2 +1,2 @@\n-x\n-y\n\\ No newline at end of file\n" +
				"+X\n+Y\n\\ No newline at end of file\n"},
		{Path: "empty"},
		{Path: "same", Replaced: 2},
	}
	check.Equal(t, "files", want, got.Files)
	w.expect(map[string]string{"a": "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "b": "X\nY", "link": "-> b", "new/": "",
		"new/file": "n\n", "empty": "", "same": "s\n"})
}

func TestAnEditThatCannotBeMadeSaysWhy(t *testing.T) {
	const source = "package main\n\nfunc main() {\n\tprintln(\"hello, world\")\n\treturn\n}\n\n" +
		"func other() {\n\treturn\n}\n"
	many := strings.Repeat("x\n", 200)
	for name, tt := range map[string]struct {
		file string
		edit protocol.Edit
		code protocol.ErrorCode
		says []string
	}{
		"more than once": {source, protocol.Edit{OldText: "\treturn\n}"}, protocol.NotUnique,
			[]string{"occurs 2 times", "lines 5, 9", "all to be replaced"}},
		"much more than once": {many, protocol.Edit{OldText: "x"}, protocol.NotUnique,
			[]string{"more than 100 times", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."}},
		"twice in a line":       {"b\nxa-xa\n", protocol.Edit{OldText: "xa"}, protocol.NotUnique, []string{"2 times", "lines 2."}},
		"twice, overlapping":    {"aaa", protocol.Edit{OldText: "aa"}, protocol.NotUnique, []string{"occurs 2 times"}},
		"twice, from a newline": {"a\nb\na\nb", protocol.Edit{OldText: "\nb"}, protocol.NotUnique, []string{"lines 1, 3."}},
		"other indentation": {source, protocol.Edit{OldText: "    println(\"hello, world\")\n    return"}, protocol.NoMatch,
			[]string{"same but for indentation", "     4\t\tprintln(\"hello, world\")\n     5\t\treturn"}},
		"spaces at the end": {"a \nb\n", protocol.Edit{OldText: "a\nb"}, protocol.NoMatch,
			[]string{"same but for whitespace at the ends of lines", "     1\ta \n     2\tb"}},
		"other spaces within": {"f(a,  b)\n", protocol.Edit{OldText: "f( a, b )"}, protocol.NoMatch,
			[]string{"same but for whitespace:", "     1\tf(a,  b)"}},
		"other line endings": {"a\r\nb\nc\n", protocol.Edit{OldText: "a\nb"}, protocol.NoMatch,
			[]string{"same but for line endings"}},
		"line endings of Windows where there are none": {"a\nb\n", protocol.Edit{OldText: "a\r\nb"}, protocol.NoMatch,
			[]string{"same but for line endings"}},
		"one line differs": {source, protocol.Edit{OldText: "func main() {\n\tprintln(\"hello\")\n\treturn\n}"},
			protocol.NoMatch, []string{"nearest is", "     3\tfunc main() {", "     4\t\tprintln(\"hello, world\")"}},
		"a line is like it": {source, protocol.Edit{OldText: "println('hello world')"}, protocol.NoMatch,
			[]string{"nearest is", "     4\t\tprintln(\"hello, world\")"}},
		"nothing is like it": {source, protocol.Edit{OldText: "zzzzzzzzzzzzzz"}, protocol.NoMatch,
			[]string{"Nothing in the file"}},
		"nothing but spaces": {source, protocol.Edit{OldText: "     \n\n\n   "}, protocol.NoMatch,
			[]string{"Nothing in the file"}},
		"nothing is replaced": {source, protocol.Edit{NewText: "x"}, protocol.BadRequest, []string{"not empty"}},
		"by the same": {source, protocol.Edit{OldText: "main", NewText: "main"}, protocol.BadRequest,
			[]string{"the same"}},
		"by a zero byte": {source, protocol.Edit{OldText: "other", NewText: "\x00"}, protocol.BadRequest,
			[]string{"zero byte"}},
		"by too much": {strings.Repeat("a", 1<<20), protocol.Edit{OldText: "a", NewText: strings.Repeat("b", 32),
			ReplaceAll: true},
			protocol.TooLarge, []string{"32 MiB", "16 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			w.put("file", tt.file)
			w.put("first", "1\n")
			tt.edit.Path = "file"
			_, err := w.Edit(t.Context(), "", edits(tt.edit))
			refused(t, err, tt.code, tt.says...)
			_, err = w.Edit(t.Context(), "", edits(protocol.Edit{Path: "first", OldText: "1", NewText: "2"},
				protocol.Edit{Path: "new", NewText: "n"}, tt.edit))
			refused(t, err, tt.code, append(tt.says, "Edit 3 of 3", "No file was changed")...)
			w.expect(map[string]string{"file": tt.file, "first": "1\n"})
		})
	}
}

func TestEditOfMissingFileRequiresEmptyOldText(t *testing.T) {
	w := newWorkspace(t)
	_, err := w.Edit(t.Context(), "", edits(protocol.Edit{Path: "file", OldText: "a", NewText: "b"}))
	refused(t, err, protocol.NotFound, "leave the text to replace empty")
	_, err = w.Edit(t.Context(), "", edits(protocol.Edit{Path: "dir/", NewText: "b"}))
	refused(t, err, protocol.NotRegular, "slash")
	w.expect(map[string]string{})
}

func TestEditsAreBounded(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a")
	_, err := w.Edit(t.Context(), "", edits())
	refused(t, err, protocol.BadRequest, "1 to 500")
	_, err = w.Edit(t.Context(), "", edits(make([]protocol.Edit, 501)...))
	refused(t, err, protocol.BadRequest, "501")
	var large []protocol.Edit
	for _, name := range []string{"a", "b", "c"} {
		w.put(name, strings.Repeat("x", protocol.MaxFileBytes-1)+"y")
		large = append(large, protocol.Edit{Path: name, OldText: "y", NewText: "z"})
	}
	before := w.all()
	_, err = w.Edit(t.Context(), "", edits(large...))
	refused(t, err, protocol.TooLarge, "64 MiB together")
	w.expect(before)
}

func TestDiffsAreCut(t *testing.T) {
	lines := strings.Repeat("a line that is not so short\n", 5_000)
	for name, tt := range map[string]struct{ before, after string }{
		"of one large change":   {"", lines},
		"of a file all changed": {lines, strings.ReplaceAll(lines, "not so short", "short")},
		"of changes far apart":  {strings.Repeat(lines+"x\n", 20), strings.Repeat(lines+"y\n", 20)},
	} {
		t.Run(name, func(t *testing.T) {
			diff := unified("file", false, tt.before, tt.after, maxDiff)
			if len(diff) > maxDiff || !strings.HasPrefix(diff, "--- file\n+++ file\n@@ ") {
				t.Errorf("got %d bytes: %.100q", len(diff), diff)
			}
			if cut := strings.HasSuffix(diff, "\n"+cutDiff); cut == strings.HasPrefix(name, "of changes") {
				t.Errorf("it ends in %q", diff[len(diff)-50:])
			}
		})
	}
	if diff := unified("a\n\"b", true, "", "x", 200); !strings.HasPrefix(diff, "--- /dev/null\n+++ \"a\\n\\\"b\"\n") {
		t.Errorf("of a strange name: %q", diff)
	}
}

// seeds of contents, old texts and new texts.
var seeds = [][3]string{
	{"a\nb\nc\n", "b", "x"}, {"a\r\nb\r\n", "a\nb", "x\ny"}, {"a\r\nb\n", "a\nb", "x"}, {"aaa", "aa", "b"}, {"", "",
		"a"},
	{"a", "", "b"}, {"Grüße", "ü", "ue"}, {"a\xff", "a", "b"}, {"a\x00", "a", "b"}, {"\r\n\r\n", "\n", "x\r\ny\n"},
	{"a\nb", "b", "c"}, {"  f( x )\n", "f(x)", "g"},
}

func FuzzEditsEqualReplace(f *testing.F) {
	for _, s := range seeds {
		f.Add(s[0], s[1], s[2], true)
		f.Add(s[0], s[1], s[2], false)
	}
	f.Fuzz(func(t *testing.T, content, oldText, newText string, all bool) {
		e := protocol.Edit{Path: "file", OldText: oldText, NewText: newText, ReplaceAll: all}
		got, n, err := applyEdit(e, content, true)
		crlf := endsInCRLF(content)
		if err != nil {
			unique := strings.Count(content, oldText) == 1 && !overlaps(content, oldText)
			sensible := oldText != "" && oldText != newText && !strings.Contains(newText, "\x00")
			if sensible && !crlf && (unique || all && strings.Contains(content, oldText)) {
				t.Errorf("%q in %q: %v", oldText, content, err)
			}
			return
		}
		switch {
		case oldText == "":
			if got != newText || content != "" {
				t.Errorf("%q became %q", content, got)
			}
		case crlf && !strings.Contains(oldText, "\r"):
			if want := strings.ReplaceAll(content, toCRLF(oldText), toCRLF(newText)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if strings.Contains(got, "\n") && !endsInCRLF(got) {
				t.Errorf("%q has become %q", content, got)
			}
		default:
			if want := strings.ReplaceAll(content, oldText, newText); got != want || n != strings.Count(content, oldText) {
				t.Errorf("got %q and %d, want %q", got, n, want)
			}
		}
		if !all && oldText != "" && n != 1 {
			t.Errorf("%d were replaced", n)
		}
	})
}

func overlaps(content, text string) bool {
	at := strings.Index(content, text)
	return at >= 0 && strings.Contains(content[min(at+1, len(content)):], text)
}

func FuzzARefusedEditChangesNothing(f *testing.F) {
	for _, s := range seeds {
		f.Add(s[0], s[1], s[2], "other")
		f.Add(s[0], s[1], s[2], "../canary")
	}
	f.Fuzz(func(t *testing.T, content, oldText, newText, path string) {
		w := newWorkspace(t)
		w.put("file", content)
		w.put("before", "b\n")
		before := w.all()
		_, err := w.Edit(t.Context(), "", edits(protocol.Edit{Path: "before", OldText: "b", NewText: "c"},
			protocol.Edit{Path: "file", OldText: oldText, NewText: newText}, protocol.Edit{Path: path, NewText: newText}))
		if after := w.all(); err != nil && !maps.Equal(before, after) {
			t.Errorf("%v, and yet there is %q", err, after)
		} else if err == nil && after["before"] != "c\n" {
			t.Errorf("it was made, and there is %q", after)
		}
	})
}
