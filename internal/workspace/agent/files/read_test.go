// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestLinesAreReadAsTheyAre(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		file                string
		first, limit, bytes int64
		content             string
		lines, total        int64
	}{
		"all of a file":                 {file: "a\nb\nc\n", content: "a\nb\nc\n", lines: 3, total: 3},
		"no newline at the end":         {file: "a\nb", content: "a\nb", lines: 2, total: 2},
		"line endings of Windows":       {file: "a\r\nb\r\n", content: "a\r\nb\r\n", lines: 2, total: 2},
		"a carriage return alone":       {file: "a\rb\n", content: "a\rb\n", lines: 1, total: 1},
		"a lone carriage return ends":   {file: "a\nb\r", content: "a\nb\r", lines: 2, total: 2},
		"an empty file":                 {file: "", content: "", lines: 0, total: 0},
		"a file of one newline":         {file: "\n", content: "\n", lines: 1, total: 1},
		"some lines":                    {file: "a\nb\nc\nd\n", first: 2, limit: 2, content: "b\nc\n", lines: 2, total: 4},
		"the last line without newline": {file: "a\nb\nc", first: 3, content: "c", lines: 1, total: 3},
		"counted without newline":       {file: "a\nb\nc", limit: 1, content: "a\n", lines: 1, total: 3},
		"behind the end":                {file: "a\nb\n", first: 7, content: "", lines: 0, total: 2},
		"as many lines as there may be": {file: strings.Repeat("l\n", 3000), content: strings.Repeat("l\n", 2000),
			lines: 2000, total: 3000},
		"as many bytes as there may be": {file: strings.Repeat("1234567\n", 50), bytes: 256,
			content: strings.Repeat("1234567\n", 32), lines: 32, total: 50},
		"text of many bytes a character": {file: "Grüße, 世界\n\ufeff\n", content: "Grüße, 世界\n\ufeff\n", lines: 2, total: 2},
		"a line of a megabyte": {file: "a\n" + long + "\r\nb\n",
			content: "a\n" + long[:4096] + " [... the line is cut: it has 1048578 bytes]\r\nb\n", lines: 3, total: 3},
		"a line of a megabyte and no newline": {file: long,
			content: long[:4096] + " [... the line is cut: it has 1048576 bytes]", lines: 1, total: 1},
		"a long line, cut between characters": {file: strings.Repeat("ä", 3000) + "x\n", bytes: 257,
			content: strings.Repeat("ä", 96) + " [... the line is cut: it has 6002 bytes]\n", lines: 1, total: 1},
		"a line that just fits": {file: long[:4096] + "\r\n", content: long[:4096] + "\r\n", lines: 1, total: 1},
		"a line that just does not fit": {file: long[:4097], content: long[:4096] +
			" [... the line is cut: it has 4097 bytes]", lines: 1, total: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			w.put("file", tt.file)
			got, err := w.Read(t.Context(), &protocol.ReadRequest{Path: "file", Offset: tt.first, Limit: tt.limit,
				MaxBytes: tt.bytes})
			check.OK(t, err)
			want := &protocol.ReadResponse{Content: tt.content, FirstLine: max(tt.first, 1), Lines: tt.lines,
				TotalLines: tt.total, Size: int64(len(tt.file))}
			check.Equal(t, "response", want, got)
			if tt.bytes > 0 && int64(len(got.Content)) > tt.bytes {
				t.Errorf("got %d bytes, more than %d", len(got.Content), tt.bytes)
			}
		})
	}
}

func TestBinaryFileIsRejectedWithSizeAndType(t *testing.T) {
	for name, tt := range map[string]struct{ file, says string }{
		"a picture":                  {"\x89PNG\x0D\x0A\x1A\x0A\x00\x00", "10 bytes of type image/png"},
		"text in UTF-16":             {"\xff\xfeh\x00i\x00", "6 bytes of type text/plain; charset=utf-16le"},
		"a zero byte":                {"abc\x00def", "7 bytes of type application/octet-stream"},
		"a byte that is no UTF-8":    {"abc\n\xffdef", "byte 5 of its 8 bytes"},
		"a character that is cut":    {"abc\xe2\x82", "byte 4 of its 5 bytes"},
		"no UTF-8 far into the file": {strings.Repeat("abcdefg\n", 2000) + "\xc3(\n", "2001"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			w.put("file", tt.file)
			_, err := w.Read(t.Context(), &protocol.ReadRequest{Path: "file", Limit: 3000})
			refused(t, err, protocol.NotText, tt.says)
			if !strings.Contains(name, "far") {
				_, err = w.Edit(t.Context(), "", edits(protocol.Edit{Path: "file", OldText: "abc", NewText: "x"}))
				refused(t, err, protocol.NotText, tt.says)
			}
			w.expect(map[string]string{"file": tt.file})
		})
	}
}

func edits(all ...protocol.Edit) *protocol.EditRequest { return &protocol.EditRequest{Edits: all} }

func TestCharacterAcrossSniffBoundaryIsDetectedAsText(t *testing.T) {
	for shift := range 4 {
		w := newWorkspace(t)
		text := strings.Repeat("x", sniffed-shift) + "\U0001f600\n"
		w.put("file", text)
		if got, err := w.Read(t.Context(), &protocol.ReadRequest{Path: "file"}); err != nil || got.TotalLines != 1 {
			t.Errorf("shifted by %d: %v", shift, err)
		}
	}
}

func TestHugeFileIsReadOnlyNearItsStart(t *testing.T) {
	w := newWorkspace(t)
	w.put("log", strings.Repeat("a line of a log\n", 1000))
	check.OK(t, os.Truncate(filepath.Join(w.dir, "log"), 10<<30))
	got, err := w.Read(t.Context(), &protocol.ReadRequest{Path: "log", Offset: 999, Limit: 2})
	if err != nil || got.Content != "a line of a log\na line of a log\n" || got.TotalLines != -1 || got.Size != 10<<30 {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = w.Read(t.Context(), &protocol.ReadRequest{Path: "log", Offset: 5000})
	refused(t, err, protocol.TooLarge, "5000", "10 GiB", "execute")
	_, err = w.Content(t.Context(), "log")
	refused(t, err, protocol.TooLarge, "10 GiB", "16 MiB")
	_, err = w.Edit(t.Context(), "", edits(protocol.Edit{Path: "log", OldText: "a", NewText: "b"}))
	refused(t, err, protocol.TooLarge, "10 GiB")
	check.OK(t, os.WriteFile(filepath.Join(w.dir, "sparse"), nil, 0o644))
	check.OK(t, os.Truncate(filepath.Join(w.dir, "sparse"), 10<<30))
	_, err = w.Read(t.Context(), &protocol.ReadRequest{Path: "sparse"})
	refused(t, err, protocol.NotText, "10 GiB of type application/octet-stream")
}

func TestAReadingThatNobodyWaitsForEnds(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Read(ctx, &protocol.ReadRequest{Path: "file"}); !errors.Is(err, context.Canceled) {
		t.Errorf("reading: %v", err)
	}
	if _, err := w.Content(ctx, "file"); !errors.Is(err, context.Canceled) {
		t.Errorf("reading as a whole: %v", err)
	}
	if _, err := w.Search(ctx, &protocol.SearchRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("searching: %v", err)
	}
	if _, err := w.Edit(ctx, "", edits(protocol.Edit{Path: "file", OldText: "a"})); !errors.Is(err, context.Canceled) {
		t.Errorf("editing: %v", err)
	}
	w.expect(map[string]string{"file": "a\n"})
}

func TestNumbersThatMakeNoSenseAreRefused(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a\n")
	for _, r := range []protocol.ReadRequest{{Offset: -1}, {Limit: -1}, {MaxBytes: -1}} {
		r.Path = "file"
		_, err := w.Read(t.Context(), &r)
		refused(t, err, protocol.BadRequest, "negative")
	}
}

func TestContentIsReadAsAWhole(t *testing.T) {
	for name, tt := range map[string]struct{ file, mediaType string }{
		"text":                {"Grüße\r\nno newline", "text/plain; charset=utf-8"},
		"a picture":           {"GIF89a\x00\x01\xff", "image/gif"},
		"nothing":             {"", "text/plain; charset=utf-8"},
		"as much as there is": {strings.Repeat("\x00", protocol.MaxFileBytes), "application/octet-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			w.put("dir/file", tt.file)
			content, err := w.Content(t.Context(), "dir/file")
			check.OK(t, err)
			defer content.Close()
			// What is appended meanwhile is not part of what was opened.
			grows, err := os.OpenFile(filepath.Join(w.dir, "dir/file"), os.O_APPEND|os.O_WRONLY, 0)
			check.OK(t, err)
			fmt.Fprint(grows, "more")
			check.OK(t, grows.Close())
			got, err := io.ReadAll(content)
			check.OK(t, err)
			if string(got) != tt.file || content.MediaType != tt.mediaType || content.Modified.IsZero() {
				t.Errorf("got %d bytes of type %s", len(got), content.MediaType)
			}
		})
	}
}
