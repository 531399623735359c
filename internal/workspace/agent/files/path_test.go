// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestWherePathsLead(t *testing.T) {
	w := newWorkspace(t)
	w.put("src/main.go", "package main\n")
	w.link("src", "code")
	w.link("../src/main.go", "src/again.go")
	w.link(w.dir+"/src", "absolute")
	w.link(w.dir+"/src/main.go", "src/absolute.go")
	w.link("not/there/yet", "dangling")
	for name, tt := range map[string]struct{ path, leads string }{
		"a name":                              {"src/main.go", "src/main.go"},
		"dots and slashes":                    {".//src/././/main.go", "src/main.go"},
		"up and down":                         {"src/../src/main.go", "src/main.go"},
		"an absolute path":                    {w.dir + "/src/main.go", "src/main.go"},
		"an absolute path with more slashes":  {"/" + w.dir + "//src///main.go", "src/main.go"},
		"the directory itself":                {w.dir, "."},
		"the directory itself, relative":      {".", "."},
		"a link to a directory":               {"code/main.go", "src/main.go"},
		"a link that goes up":                 {"src/again.go", "src/main.go"},
		"an absolute link within":             {"absolute/main.go", "src/main.go"},
		"an absolute link from below":         {"src/absolute.go", "src/main.go"},
		"up from behind a link":               {"code/../dangling", "not/there/yet"},
		"what is not there yet":               {"new/dir/file", "new/dir/file"},
		"a link to what is not there yet":     {"dangling", "not/there/yet"},
		"a name that only looks like a way":   {"..hidden/...", "..hidden/..."},
		"spaces, quotes, newlines, umlauts":   {"a b/\"c\"\n/ä", "a b/\"c\"\n/ä"},
		"a name like an escape sequence's":    {"%2e%2e/x", "%2e%2e/x"},
		"a directory, with a slash":           {"src/", "src"},
		"what begins like the directory does": {"workspace2", "workspace2"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := w.Files.dir.resolve(tt.path)
			if err != nil || p.path != tt.leads {
				t.Errorf("it leads to %q: %v; want %q", p.path, err, tt.leads)
			}
		})
	}
}

// badPaths are refused whatever they are asked for.
func badPaths(w *workspace) map[string]struct {
	path string
	code protocol.ErrorCode
	says string
} {
	return map[string]struct {
		path string
		code protocol.ErrorCode
		says string
	}{
		"nothing":                         {"", protocol.BadRequest, "missing"},
		"up":                              {"..", protocol.OutsideWorkspace, "execute"},
		"up and out":                      {"../canary", protocol.OutsideWorkspace, "execute"},
		"down and further up":             {"dir/../../canary", protocol.OutsideWorkspace, "execute"},
		"absolute":                        {w.out, protocol.OutsideWorkspace, "execute"},
		"absolute, by way of the files":   {w.dir + "/../canary", protocol.OutsideWorkspace, "execute"},
		"absolute, beside the directory":  {w.dir + "2/file", protocol.OutsideWorkspace, "execute"},
		"the root":                        {"/", protocol.OutsideWorkspace, "execute"},
		"a link out":                      {"out", protocol.OutsideWorkspace, "execute"},
		"an absolute link out":            {"abs-out", protocol.OutsideWorkspace, "the link \"abs-out\""},
		"a file behind a link up":         {"up/canary", protocol.OutsideWorkspace, "execute"},
		"a file behind a link to the top": {"top/etc/passwd", protocol.OutsideWorkspace, "execute"},
		"a circle":                        {"loop-a", protocol.BadRequest, "circle"},
		"a link that grows":               {"itself", protocol.BadRequest, "circle"},
		"a zero byte":                     {"a\x00b", protocol.BadRequest, "zero byte"},
		"no UTF-8":                        {"a\xffb", protocol.BadRequest, "UTF-8"},
		"a name that is too long":         {strings.Repeat("a", 300), protocol.BadRequest, "too long"},
		"a path that is too long":         {strings.Repeat("a/", 3000), protocol.BadRequest, "6000 bytes"},
		"a path that is too deep":         {strings.Repeat("a/", 300), protocol.BadRequest, "elements"},
		"below a file":                    {"file/x", protocol.NotFound, "\"file\" is a file"},
		"below a pipe":                    {"pipe/x", protocol.NotFound, "a named pipe"},
		"up from what is not there":       {"missing/../file", protocol.NotFound, "no file"},
		"a directory":                     {"dir", protocol.NotRegular, "a directory"},
		"the workspace's directory":       {".", protocol.NotRegular, "a directory"},
		"a pipe":                          {"pipe", protocol.NotRegular, "a named pipe"},
		"a socket":                        {"socket", protocol.NotRegular, "a socket"},
	}
}

func TestBadPathsAreRejectedByEveryOperation(t *testing.T) {
	w := newWorkspace(t)
	w.unfriendly()
	before := w.all()
	for name, tt := range badPaths(w) {
		t.Run(name, func(t *testing.T) {
			_, err := w.Read(t.Context(), &protocol.ReadRequest{Path: tt.path})
			refused(t, err, tt.code, tt.says)
			_, err = w.Content(t.Context(), tt.path)
			refused(t, err, tt.code, tt.says)
			_, err = w.Write(t.Context(), "", tt.path, "new")
			refused(t, err, tt.code, tt.says)
			_, err = w.Edit(t.Context(), "", &protocol.EditRequest{Edits: []protocol.Edit{{Path: tt.path, NewText: "new"}}})
			refused(t, err, tt.code, tt.says)
			if tt.path == "" || strings.HasSuffix(name, "directory") {
				return // A directory can be searched.
			}
			_, err = w.Search(t.Context(), &protocol.SearchRequest{Path: tt.path})
			refused(t, err, tt.code, tt.says)
		})
	}
	w.expect(before)
}

func TestSymlinkSwapDuringOperationCannotEscapeRoot(t *testing.T) {
	w := newWorkspace(t)
	w.put("real/canary", "inside")
	w.link("real", "dir")
	swapped, done := make(chan struct{}), t.Context().Done()
	go func() { // It is what a command can do while a tool works.
		defer close(swapped)
		next := filepath.Join(w.dir, "next")
		for i := range 3000 {
			target := []string{"real", ".."}[i%2]
			if os.Symlink(target, next) != nil || os.Rename(next, filepath.Join(w.dir, "dir")) != nil {
				return
			}
		}
	}()
	for working := true; working; {
		select {
		case <-swapped:
			working = false
		case <-done:
			working = false
		default:
		}
		if got, err := w.Read(t.Context(), &protocol.ReadRequest{Path: "dir/canary"}); err == nil &&
			strings.Contains(got.Content, canary) {
			t.Fatalf("read was %q", got.Content)
		}
		_, _ = w.Write(t.Context(), "", "dir/canary", "inside") // The test's end looks at what is outside.
	}
}

func TestErrorMessageTruncatesLongPath(t *testing.T) {
	w := newWorkspace(t)
	for _, path := range []string{strings.Repeat("x/", 2000), strings.Repeat("x", 4000), strings.Repeat("/x", 2000)} {
		_, err := w.Read(t.Context(), &protocol.ReadRequest{Path: path})
		if err == nil || len(err.Error()) > 600 || !strings.Contains(err.Error(), "…") {
			t.Errorf("%.20s: %v", path, err)
		}
	}
}

func TestSymlinkedRootResolvesPathsByBothNames(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a\n")
	link := filepath.Join(filepath.Dir(w.dir), "link")
	check.OK(t, os.Symlink(w.dir, link))
	real := w.dir
	w.dir = link
	w.open()
	for _, path := range []string{link + "/file", real + "/file"} {
		if p, err := w.Files.dir.resolve(path); err != nil || p.path != "file" {
			t.Errorf("%s leads to %q: %v", path, p.path, err)
		}
	}
}

func FuzzNoPathLeadsOut(f *testing.F) {
	for _, seed := range []string{"", ".", "..", "/", "../canary", "up/canary", "top/etc/passwd",
		"dir/link/../../canary",
		"abs-out", "out", "a\x00", "loop-a", "itself/itself", "new/../../canary", "//canary", "dir/up/up/canary",
		"dir/./..",
		"top/../canary", "dangling"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, path, target string) {
		w := newWorkspace(t)
		check.OK(t, os.Mkdir(filepath.Join(w.dir, "dir"), 0o755))
		w.link("../canary", "out")
		w.link(w.out, "abs-out")
		w.link("..", "up")
		w.link("..", "dir/up")
		w.link("/", "top")
		w.link("loop-a", "loop-a")
		w.link("itself/x", "itself")
		w.link("../new", "dangling")
		if target != "" && !strings.Contains(target, "\x00") && len(target) < maxPath {
			w.link(target, "dir/link")
		}
		before := treeOf(t, filepath.Dir(w.dir))
		for _, path := range []string{path, "dir/link", "dir/link/" + path, w.dir + "/" + path} {
			if content, err := w.Content(t.Context(), path); err == nil {
				content.Close()
				t.Errorf("%q was read, although there is no file", path)
			}
			if got, err := w.Read(t.Context(), &protocol.ReadRequest{Path: path}); err == nil {
				t.Errorf("of %q was read %q", path, got.Content)
			}
			found, err := w.Search(t.Context(), &protocol.SearchRequest{Path: path, Pattern: ".", Hidden: true})
			if err == nil && len(found.Matches) > 0 {
				t.Errorf("in %q was found %v", path, found.Matches)
			}
		}
		for _, path := range []string{path, "dir/link/" + path} {
			_, _ = w.Write(t.Context(), "", path, "written")
			_, _ = w.Edit(t.Context(), "", &protocol.EditRequest{Edits: []protocol.Edit{{Path: path, OldText: "written",
				NewText: "edited"}}})
		}
		for name, content := range treeOf(t, filepath.Dir(w.dir)) {
			if !strings.HasPrefix(name, "workspace/") && !strings.HasPrefix(name, "state/") && before[name] != content {
				t.Errorf("%q has become %q", name, content)
			}
		}
	})
}
