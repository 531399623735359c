// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// quote is a text as JSON.
func quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

func TestReadFileReturnsNumberedLines(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		asked protocol.ReadRequest
		reply protocol.ReadResponse
		want  map[string]any
	}{
		"a whole file": {
			`{"path":"a.txt"}`, protocol.ReadRequest{Path: "a.txt", Offset: 1, Limit: 2000},
			protocol.ReadResponse{Content: "one\n\ntwo\n", FirstLine: 1, Lines: 3, TotalLines: 3, Size: 9},
			map[string]any{"content": "1\tone\n2\t\n3\ttwo\n", "file_size": 9.0, "total_lines": 3.0, "lines_read": 3.0},
		},
		"a part": {
			`{"path":"/workspace/a.txt","offset":2,"limit":1}`,
			protocol.ReadRequest{Path: "/workspace/a.txt", Offset: 2, Limit: 1},
			protocol.ReadResponse{Content: "two\n", FirstLine: 2, Lines: 1, TotalLines: 9, Size: 40},
			map[string]any{"content": "2\ttwo\n", "file_size": 40.0, "total_lines": 9.0, "lines_read": 1.0,
				"note": "The file has 9 lines: continue at offset 3."},
		},
		"a part of a file that is too large to count": {
			`{"path":"a"}`, protocol.ReadRequest{Path: "a", Offset: 1, Limit: 2000},
			protocol.ReadResponse{Content: "x\n", FirstLine: 1, Lines: 1, TotalLines: -1, Size: 1 << 40},
			map[string]any{"content": "1\tx\n", "file_size": float64(1 << 40), "lines_read": 1.0,
				"note": "There may be more: continue at offset 2."},
		},
		"behind the end": {
			`{"path":"a","offset":7}`, protocol.ReadRequest{Path: "a", Offset: 7, Limit: 2000},
			protocol.ReadResponse{FirstLine: 7, TotalLines: 3, Size: 6},
			map[string]any{"content": "", "file_size": 6.0, "total_lines": 3.0, "lines_read": 0.0,
				"note": "There is nothing from line 7 on."},
		},
		"an empty file": {
			`{"path":"a"}`, protocol.ReadRequest{Path: "a", Offset: 1, Limit: 2000}, protocol.ReadResponse{FirstLine: 1},
			map[string]any{"content": "", "file_size": 0.0, "lines_read": 0.0, "note": "The file is empty."},
		},
		"no newline at the end, returns, and control characters": {
			`{"path":"a"}`, protocol.ReadRequest{Path: "a", Offset: 1, Limit: 2000},
			protocol.ReadResponse{Content: "a\r\n\x1b[31mb", FirstLine: 1, Lines: 2, TotalLines: 2, Size: 10},
			map[string]any{"content": "1\ta\r\n2\t\x1b[31mb", "file_size": 10.0, "total_lines": 2.0, "lines_read": 2.0,
				"note": "The last line does not end with a newline."},
		},
		"numbers that make no sense": {
			`{"path":"a","offset":5}`, protocol.ReadRequest{Path: "a", Offset: 5, Limit: 2000},
			protocol.ReadResponse{Content: "x\n", FirstLine: 1 << 62, Lines: 1 << 62, TotalLines: 5, Size: -9},
			map[string]any{"content": "5\tx\n", "file_size": 0.0, "total_lines": 5.0, "lines_read": 1.0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.asked.MaxBytes = tools.MaxResultBytes
			b.agent.Read = func(asked protocol.ReadRequest) (*protocol.ReadResponse, *protocol.Error) {
				check.Equal(t, "request", c.asked, asked)
				return &c.reply, nil
			}
			check.Equal(t, "result", c.want, b.good("read_file", c.input))
		})
	}
}

func TestReadFileReturnsAsManyLinesAsFit(t *testing.T) {
	for name, c := range map[string]struct {
		line        string
		lines       int
		least, most int
		has         string
	}{
		"short lines":             {"x\n", 30_000, 5000, 8000, "1\tx\n2\tx\n"},
		"lines of quotes":         {strings.Repeat(`"`, 30) + "\n", 2000, 800, 1000, `"""`},
		"one line of a megabyte":  {strings.Repeat("y", 1_000_000) + "\n", 1, 1, 1, "bytes of this line left out"},
		"one line without an end": {strings.Repeat("世", 30_000), 1, 1, 1, "bytes of this line left out"},
		"lines of control":        {strings.Repeat("\x01", 100) + "\n", 1000, 90, 110, "1\t\x01"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			content := strings.Repeat(c.line, c.lines)
			b.agent.Read = func(protocol.ReadRequest) (*protocol.ReadResponse, *protocol.Error) {
				return &protocol.ReadResponse{Content: content, FirstLine: 1, Lines: int64(c.lines), TotalLines: int64(c.lines),
					Size: int64(len(content))}, nil
			}
			got := b.good("read_file", `{"path":"a"}`)
			read, _ := got["lines_read"].(float64)
			if int(read) < c.least || int(read) > c.most || !has(got["content"], c.has) {
				t.Errorf("%v lines were read: %.100q", read, got["content"])
			}
			if c.lines > 1 && !has(got["note"], fmt.Sprintf("continue at offset %d", int(read)+1)) {
				t.Errorf("the note is %v", got["note"])
			}
		})
	}
}

func TestReadFileRejectsNonTextWithHint(t *testing.T) {
	for file, want := range map[string]string{
		"a/logo.PNG": `"a/logo.PNG" is an image, not a text: attach_file shows it`,
		"a.out":      `"a.out" is not UTF-8 text: look at it with execute, for example with file or od`,
	} {
		b := newBench(t)
		b.agent.Read = func(protocol.ReadRequest) (*protocol.ReadResponse, *protocol.Error) {
			return nil, &protocol.Error{Code: protocol.NotText, Message: "it has bytes that are no UTF-8"}
		}
		check.Equal(t, "error", want, b.fail("read_file", `{"path":`+quote(file)+`}`))
	}
}

func TestFileTooLargeToAttachIsNotRead(t *testing.T) {
	b := newBench(t)
	piece, sent, refused := make([]byte, 64<<10), 0, false
	ended := make(chan struct{})
	b.agent.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		defer close(ended)
		for ; sent < protocol.MaxFileBytes && !refused; sent += len(piece) {
			_, err := w.Write(piece)
			refused = err != nil
		}
		return true
	}
	check.Equal(t, "error", `"core" is too large: a file may have 512 KiB`, b.fail("attach_file", `{"path":"core"}`))
	<-ended
	if !refused {
		t.Errorf("all %d bytes of the file were read", sent)
	}
}

func TestAFileIsWrittenAsAWhole(t *testing.T) {
	b := newBench(t)
	const content = "a\r\n\"quoted\"\x00 <tag> 世"
	want := map[string]any{"ok": true, "path": "a b/c.txt", "size": float64(len(content)), "created": true}
	check.Equal(t, "result", want, b.good("write_file", `{"path":"a b/c.txt","content":`+quote(content)+`}`))
	got, _ := b.agent.File("a b/c.txt")
	check.Equal(t, "content", content, got)
	want = map[string]any{"ok": true, "path": "a b/c.txt", "size": 0.0}
	check.Equal(t, "second result", want, b.good("write_file", `{"path":"a b/c.txt","content":""}`))
}

func TestEditFilesSendsKeyOfCall(t *testing.T) {
	b := newBench(t)
	b.agent.Edit = func(of string, asked protocol.EditRequest) (*protocol.EditResponse, *protocol.Error) {
		want := protocol.EditRequest{Edits: []protocol.Edit{
			{Path: "a", OldText: "x", NewText: "y", ReplaceAll: true}, {Path: "/workspace/b", NewText: "new"},
		}}
		if diff := cmp.Diff(want, asked); diff != "" || of != key {
			t.Errorf("asked for %s: -want +got\n%s", of, diff)
		}
		return &protocol.EditResponse{Files: []protocol.EditedFile{{Path: "a", Replaced: 2, Diff: "-x\n+y\n"}}}, nil
	}
	const input = `{"edits":[{"path":"a","old_text":"x","new_text":"y","replace_all":true},` +
		`{"path":"/workspace/b","old_text":"","new_text":"new"}]}`
	want := map[string]any{"files": []any{map[string]any{"path": "a", "replaced": 2.0, "diff": "-x\n+y\n"}}}
	check.Equal(t, "result", want, b.good("edit_files", input))
	b.agent.Edit = func(string, protocol.EditRequest) (*protocol.EditResponse, *protocol.Error) {
		return &protocol.EditResponse{Files: []protocol.EditedFile{
			{Path: "a", Diff: strings.Repeat("+\"\n", 20_000)}, {Path: "b", Diff: strings.Repeat("+\"\n", 20_000)},
		}}, nil
	}
	if got := b.good("edit_files", input); got["note"] != "Diffs were shortened: read_file shows the files." {
		t.Errorf("long diffs: %.200v", got)
	}
	b.agent.Edit = func(string, protocol.EditRequest) (*protocol.EditResponse, *protocol.Error) {
		return nil, &protocol.Error{Code: protocol.OutcomeUnknown, Message: "the edits were begun before"}
	}
	check.Equal(t, "error",
		"the edits were begun before (OutcomeUnknown). Look whether the change was made before you make it again.",
		b.fail("edit_files", input))
}

func TestMatchesAreGroupedByTheirFiles(t *testing.T) {
	b := newBench(t)
	b.agent.Search = func(asked protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error) {
		want := protocol.SearchRequest{Path: "src", Glob: "**/*.go", Pattern: "^func", IgnoreCase: true, Context: 1,
			Hidden: true, Limit: 5}
		check.Equal(t, "request", want, asked)
		return &protocol.SearchResponse{Skipped: 2, Truncated: true, Matches: []protocol.Match{
			{Path: "src/a  b.go", Line: 3, Text: "func a()\r\n", Before: []string{"// a"}, After: []string{"{"}},
			{Path: "src/a  b.go", Line: 9, Text: "func " + strings.Repeat("b", 1000)},
			{Path: "src/c.go", Line: 1, Text: "func c()"},
		}}, nil
	}
	got := b.good("search_files", `{"path":"src","glob":"**/*.go","pattern":"^func","ignore_case":true,"context":1,`+
		`"hidden":true,"limit":5}`)
	want := map[string]any{
		"files": []any{
			map[string]any{"path": "src/a  b.go", "matches": []any{
				map[string]any{"line": 3.0, "text": "func a()", "before": []any{"// a"}, "after": []any{"{"}},
				map[string]any{"line": 9.0, "text": "func " + strings.Repeat("b", maxText-6) + "…"},
			}},
			map[string]any{"path": "src/c.go", "matches": []any{map[string]any{"line": 1.0, "text": "func c()"}}},
		},
		"truncated": true, "skipped": 2.0,
		"note": "These are the first 3 matches: a narrower pattern, glob or path finds the others.",
	}
	check.Equal(t, "result", want, got)
}

func TestASearchByNameListsPaths(t *testing.T) {
	b := newBench(t)
	reply := &protocol.SearchResponse{Matches: []protocol.Match{{Path: "a.go"}, {Path: "b.go"}}}
	b.agent.Search = func(protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error) { return reply, nil }
	want := map[string]any{"files": []any{map[string]any{"path": "a.go"}, map[string]any{"path": "b.go"}}}
	check.Equal(t, "result", want, b.good("search_files", `{"glob":"*.go"}`))
	reply = &protocol.SearchResponse{}
	check.Equal(t, "note", "Nothing matches.", b.good("search_files", `{"glob":"*.go"}`)["note"])
	check.Contains(t, b.fail("search_files", `{"path":"src"}`), "pattern and glob")
}

func TestMatchesThatDoNotFitAreLeftOut(t *testing.T) {
	b := newBench(t)
	b.chat.Status.Context = &v1beta1.ContextStatus{Limit: 1000}
	reply := &protocol.SearchResponse{}
	for i := range 2000 {
		reply.Matches = append(reply.Matches,
			protocol.Match{Path: fmt.Sprint("f", i), Line: 1, Text: strings.Repeat("\"", 400)})
	}
	b.agent.Search = func(protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error) { return reply, nil }
	got := b.good("search_files", `{"pattern":"x","limit":1000}`)
	if n := len(got["files"].([]any)); n < 8 || n > 20 || got["truncated"] != true ||
		!has(got["note"], fmt.Sprintf("the first %d matches", n)) {
		t.Errorf("%d files, %v", n, got["note"])
	}
}
