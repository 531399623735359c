// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

func TestWriteCreatesMissingParentDirectories(t *testing.T) {
	w := newWorkspace(t)
	got, err := w.Write(t.Context(), "", "a/b/new file", "hello")
	check.OK(t, err)
	check.Equal(t, "answer", &protocol.FileInfo{Path: "a/b/new file", Size: 5, Created: true}, got)
	w.expect(map[string]string{"a/": "", "a/b/": "", "a/b/new file": "hello"})
	info, err := os.Stat(filepath.Join(w.dir, "a/b/new file"))
	if err != nil || info.Mode().Perm()&0o600 != 0o600 || info.Mode().Perm()&0o111 != 0 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
}

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after string
		mode          fs.FileMode
	}{
		"by a shorter text":     {"a long text\n", "short", 0o644},
		"by nothing":            {"a\n", "", 0o644},
		"by bytes":              {"a\n", "\x00\xff\r\n", 0o644},
		"a script":              {"#!/bin/sh\n", "#!/bin/sh\nls\n", 0o755},
		"a secret":              {"a", "b", 0o600},
		"one of a strange mode": {"a", "b", 0o246},
		"by the same":           {"a", "a", 0o640},
		"as large as may be":    {"a", strings.Repeat("x", protocol.MaxFileBytes), 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			w.put("file", tt.before)
			check.OK(t, os.Chmod(filepath.Join(w.dir, "file"), tt.mode))
			got, err := w.Write(t.Context(), "", "file", tt.after)
			check.OK(t, err)
			check.Equal(t, "answer", &protocol.FileInfo{Path: "file", Size: int64(len(tt.after))}, got)
			w.expect(map[string]string{"file": tt.after})
			info, err := os.Stat(filepath.Join(w.dir, "file"))
			check.OK(t, err)
			check.Equal(t, "mode", tt.mode, info.Mode())
		})
	}
}

func TestWriteThroughSymlinkChangesItsTarget(t *testing.T) {
	w := newWorkspace(t)
	w.put("real", "old")
	w.link("real", "link")
	w.link("later", "dangling")
	for path, want := range map[string]string{"link": "real", "dangling": "later"} {
		if got, err := w.Write(t.Context(), "", path, "new"); err != nil || got.Path != want {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
	w.expect(map[string]string{"real": "new", "link": "-> real", "later": "new", "dangling": "-> later"})
}

func TestWhatIsTooLargeIsNotWritten(t *testing.T) {
	w := newWorkspace(t)
	_, err := w.Write(t.Context(), "", "file", strings.Repeat("x", protocol.MaxFileBytes+1))
	refused(t, err, protocol.TooLarge, "16 MiB")
	w.expect(map[string]string{})
}

func TestAFileThatIsReplacedKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	w := newWorkspace(t)
	w.put("file", "a")
	check.OK(t, os.Chown(filepath.Join(w.dir, "file"), 1234, 2345))
	_, err := w.Write(t.Context(), "", "file", "b")
	check.OK(t, err)
	info, err := os.Stat(filepath.Join(w.dir, "file"))
	check.OK(t, err)
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 1234 || stat.Gid != 2345 {
		t.Errorf("its owner is %d:%d", stat.Uid, stat.Gid)
	}
}

// asNobody does something as a user without rights. The thread ends with it.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // It is never unlocked: the thread ends with the goroutine.
		_, err := unix.SetfsuidRetUid(65534)
		if err == nil {
			do()
		}
		done <- err
	}()
	check.OK(t, <-done)
}

func TestWhatTheUserMayNotIsRefused(t *testing.T) {
	w := newWorkspace(t)
	w.put("readonly", "a")
	w.put("secret", "a")
	w.put("closed/file", "a")
	w.put("sealed/file", "a")
	for name, mode := range map[string]fs.FileMode{"readonly": 0o444, "secret": 0, "closed": 0, "sealed": 0o555,
		".": 0o777} {
		check.OK(t, os.Chmod(filepath.Join(w.dir, name), mode))
	}
	check.OK(t, os.Chmod(w.state, 0o777))
	check.OK(t, os.Chmod(filepath.Join(w.state, "changes"), 0o777))
	for dir := filepath.Dir(w.dir); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		check.OK(t, os.Chmod(dir, 0o755))
	}
	asNobody(t, func() {
		write := func(path string) error { _, err := w.Write(t.Context(), "", path, "b"); return err }
		read := func(path string) error {
			_, err := w.Read(t.Context(), &protocol.ReadRequest{Path: path})
			return err
		}
		for name, err := range map[string]error{
			"writing a read-only file":        write("readonly"),
			"writing a file of a sealed one":  write("sealed/file"),
			"making a file in a sealed one":   write("sealed/new"),
			"making a directory there":        write("sealed/new/file"),
			"writing into a closed directory": write("closed/file"),
			"reading a secret":                read("secret"),
			"reading in a closed directory":   read("closed/file"),
		} {
			var got *protocol.Error
			if !errors.As(err, &got) || got.Code != protocol.PermissionDenied || !strings.Contains(got.Message, "mode") {
				t.Errorf("%s: %v", name, err)
			}
		}
		found, err := w.Search(t.Context(), &protocol.SearchRequest{Pattern: "a"})
		if err != nil || found.Skipped != 2 || len(found.Matches) != 2 {
			t.Errorf("searching: %+v, %v", found, err)
		}
	})
	check.OK(t, os.Chmod(filepath.Join(w.dir, "closed"), 0o755))
	w.expect(map[string]string{"readonly": "a", "secret": "a", "closed/": "", "closed/file": "a", "sealed/": "",
		"sealed/file": "a"})
}

// mounted makes a workspace on a file system of its own.
func mounted(t *testing.T, options string) *workspace {
	t.Helper()
	w := newWorkspace(t)
	if err := unix.Mount("parley", w.dir, "tmpfs", 0, options); err != nil {
		t.Skipf("only root may mount: %v", err)
	}
	t.Cleanup(func() { check.OK(t, unix.Unmount(w.dir, unix.MNT_DETACH)) })
	w.open()
	return w
}

func TestFullDiskFailsWriteWithoutLeftovers(t *testing.T) {
	w := mounted(t, "size=64k")
	w.put("a", "old a\n")
	w.put("b", "old b\n")
	_, err := w.Write(t.Context(), "", "dir/new", strings.Repeat("x", 1<<20))
	refused(t, err, protocol.NoSpace, "storage is full")
	_, err = w.Write(t.Context(), "", "a", strings.Repeat("x", 1<<20))
	refused(t, err, protocol.NoSpace, "storage is full")
	_, err = w.Edit(t.Context(), "", edits(protocol.Edit{Path: "b", OldText: "old", NewText: "new"},
		protocol.Edit{Path: "a", OldText: "old", NewText: strings.Repeat("x", 1<<20)}))
	refused(t, err, protocol.NoSpace, "storage is full")
	w.expect(map[string]string{"a": "old a\n", "b": "old b\n"})
}

func TestAReadOnlyFileSystemIsTold(t *testing.T) {
	w := mounted(t, "size=64k")
	w.put("a", "old\n")
	check.OK(t, unix.Mount("", w.dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=64k"))
	for _, path := range []string{"a", "new", "dir/new"} {
		_, err := w.Write(t.Context(), "", path, "x")
		refused(t, err, protocol.PermissionDenied, "read-only")
	}
	_, err := w.Edit(t.Context(), "", edits(protocol.Edit{Path: "a", OldText: "old", NewText: "x"}))
	refused(t, err, protocol.PermissionDenied, "read-only")
	w.expect(map[string]string{"a": "old\n"})
}

func TestWhatTheOperatingSystemSaysIsExplained(t *testing.T) {
	for err, want := range map[error]protocol.ErrorCode{
		fs.ErrNotExist: protocol.NotFound, syscall.ENOENT: protocol.NotFound, syscall.ENOTDIR: protocol.NotFound,
		syscall.EISDIR: protocol.NotRegular, syscall.ENXIO: protocol.NotRegular, syscall.ENOSPC: protocol.NoSpace,
		syscall.EDQUOT: protocol.NoSpace, syscall.EROFS: protocol.PermissionDenied, syscall.EFBIG: protocol.TooLarge,
		syscall.EACCES: protocol.PermissionDenied, syscall.EPERM: protocol.PermissionDenied,
		syscall.ENAMETOOLONG: protocol.BadRequest, syscall.ELOOP: protocol.BadRequest, syscall.EIO: protocol.Internal,
	} {
		refused(t, explain("some/file", &fs.PathError{Op: "openat", Path: "x", Err: err}), want, `"some/file"`)
	}
}

func TestWriteDoesNotReplaceConcurrentlyCreatedDirectory(t *testing.T) {
	w := newWorkspace(t)
	w.committer.before = func(step string) error {
		if step == "rename" {
			_ = os.Mkdir(filepath.Join(w.dir, "file"), 0o755)
		}
		return nil
	}
	_, err := w.Write(t.Context(), "", "file", "new")
	refused(t, err, protocol.NotRegular, "directory")
	w.expect(map[string]string{"file/": ""})
}

func TestAFileThatChangesMeanwhileIsReadAgain(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "one old\n")
	changes := 0
	w.committer.before = func(step string) error {
		if step == "write new content" && changes < attempts-1 {
			changes++
			w.put("file", fmt.Sprintf("changed %d times, old\n", changes))
		}
		return nil
	}
	_, err := w.Edit(t.Context(), "", edits(protocol.Edit{Path: "file", OldText: "old", NewText: "new"}))
	check.OK(t, err)
	w.expect(map[string]string{"file": "changed 2 times, new\n"})
}

func TestEditGivesUpOnConstantlyChangingFile(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "old\n")
	w.committer.before = func(step string) error {
		if step == "write new content" {
			w.put("file", "old "+time.Now().String()) // It is longer, or later.
		}
		return nil
	}
	_, err := w.Edit(t.Context(), "", edits(protocol.Edit{Path: "file", OldText: "old", NewText: "new"}))
	refused(t, err, protocol.Internal, "has changed meanwhile", "Nothing was changed")
	if all := w.all(); len(all) != 1 || !strings.HasPrefix(all["file"], "old ") {
		t.Errorf("there is %q", all)
	}
}

func TestConcurrentReadersSeeAtomicWrites(t *testing.T) {
	w := newWorkspace(t)
	texts := [2]string{strings.Repeat("a", 100_000), strings.Repeat("b", 150_000)}
	w.put("file", texts[0])
	stop := make(chan struct{})
	defer close(stop)
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i := range 40 {
			if _, err := w.Write(t.Context(), "", "file", texts[(i+1)%2]); err != nil {
				t.Error(err)
			}
		}
	}()
	seen := 0
	waiting.Until(t, time.Minute, "the writer is done", func() bool {
		if got, err := os.ReadFile(filepath.Join(w.dir, "file")); err != nil ||
			string(got) != texts[0] && string(got) != texts[1] {
			t.Errorf("somebody saw %d bytes: %v", len(got), err)
		}
		seen++
		select {
		case <-writing:
			return true
		default:
			return false
		}
	})
	if seen < 2 {
		t.Errorf("the file was looked at %d times", seen)
	}
}
