// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// canary is a text outside of every workspace.
const canary = "nobody may read or change this"

// workspace is a directory with files, and a canary next to it.
type workspace struct {
	*Files
	t               testing.TB
	dir, state, out string
	log             bytes.Buffer
}

func newWorkspace(t testing.TB) *workspace {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	check.OK(t, err)
	w := &workspace{t: t, dir: filepath.Join(top, "workspace"), state: filepath.Join(top, "state"),
		out: filepath.Join(top, "canary")}
	check.OK(t, os.Mkdir(w.dir, 0o755))
	check.OK(t, os.WriteFile(w.out, []byte(canary), 0o600))
	w.open()
	t.Cleanup(func() {
		if got, err := os.ReadFile(w.out); err != nil || string(got) != canary {
			t.Errorf("the canary outside is %q: %v", got, err)
		}
	})
	return w
}

// open opens the workspace, as the agent does when it starts.
func (w *workspace) open() { w.openWith(nil) }

func (w *workspace) openWith(before func(step string) error) {
	w.t.Helper()
	files, err := Open(Options{Directory: w.dir, State: w.state,
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), before: before})
	check.OK(w.t, err)
	w.Files = files
}

// put makes a file without the agent.
func (w *workspace) put(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	check.OK(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.OK(w.t, os.WriteFile(path, []byte(content), 0o644))
}

func (w *workspace) link(target, name string) {
	w.t.Helper()
	check.OK(w.t, os.Symlink(target, filepath.Join(w.dir, name)))
}

// all are the contents of files and the targets of links by their names, and the names of directories.
func (w *workspace) all() map[string]string {
	w.t.Helper()
	return treeOf(w.t, w.dir)
}

func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	check.OK(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err != nil || info.Size() > 1<<30 {
			found[name] = "huge"
			return err
		}
		switch entry.Type() {
		case 0:
			content, err := os.ReadFile(path)
			found[name] = string(content)
			return err
		case fs.ModeDir:
			found[name+"/"] = ""
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		default:
			found[name] = entry.Type().String()
		}
		return nil
	}))
	return found
}

// expect compares what there is with what should be.
func (w *workspace) expect(want map[string]string) {
	w.t.Helper()
	check.Equal(w.t, "files", want, w.all())
}

// unfriendly makes links out of the workspace, and files that are not regular.
func (w *workspace) unfriendly() {
	w.t.Helper()
	check.OK(w.t, os.Mkdir(filepath.Join(w.dir, "dir"), 0o755))
	w.put("file", "a\n")
	w.link("../canary", "out")
	w.link(w.out, "abs-out")
	w.link("..", "up")
	w.link("/", "top")
	w.link("loop-b", "loop-a")
	w.link("loop-a", "loop-b")
	w.link("itself/x", "itself")
	check.OK(w.t, syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o644))
	w.socket("socket")
	sparse, err := os.Create(filepath.Join(w.dir, "sparse"))
	check.OK(w.t, err)
	check.OK(w.t, sparse.Truncate(10<<30))
	check.OK(w.t, sparse.Close())
}

func (w *workspace) socket(name string) {
	w.t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	check.OK(w.t, err)
	defer syscall.Close(fd)
	// A relative name, because that of a temporary directory is longer than a socket's may be.
	w.t.(*testing.T).Chdir(w.dir)
	check.OK(w.t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}))
}

// refused checks the code and the message of an error.
func refused(t testing.TB, err error, code protocol.ErrorCode, says ...string) {
	t.Helper()
	var got *protocol.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an error with the code %s", err, code)
	}
	check.Equal(t, got.Message, code, got.Code)
	check.Contains(t, got.Message, says...)
	check.Lacks(t, got.Message, canary)
}
