// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
)

func volumes(t *testing.T) (source, target string) {
	t.Helper()
	source, target = t.TempDir(), t.TempDir()
	check.OK(t, os.Mkdir(filepath.Join(source, "files"), 0o700))
	check.OK(t, os.Chmod(filepath.Join(source, "files"), 0o770)) // Whatever the umask is.
	return source, target
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	check.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
	check.OK(t, os.WriteFile(name, []byte(content), 0o600))
	check.OK(t, os.Chmod(name, mode))
}

func content(t *testing.T, parts ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(parts...))
	check.OK(t, err)
	return string(raw)
}

func TestCopyKeepsModesTimesAndLinks(t *testing.T) {
	source, target := volumes(t)
	files := filepath.Join(source, "files")
	long := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	write(t, filepath.Join(files, "bin/run"), "#!", 0o755|fs.ModeSetuid|fs.ModeSetgid) // Others could run it as the fork.
	check.OK(t, os.Link(filepath.Join(files, "bin/run"), filepath.Join(files, "link")))
	write(t, filepath.Join(files, "key"), "secret", 0o400)
	check.OK(t, os.Chtimes(filepath.Join(files, "key"), long, long))
	check.OK(t, os.Symlink("/etc/hostname", filepath.Join(files, "outside")))
	check.OK(t, syscall.Mkfifo(filepath.Join(files, "pipe"), 0o600))
	write(t, filepath.Join(files, "mod/x.go"), "package x", 0o444)
	check.OK(t, os.Chmod(filepath.Join(files, "mod"), 0o555))
	check.OK(t, os.Chtimes(filepath.Join(files, "mod"), long, long))
	t.Cleanup(func() { // Otherwise the directories of the test cannot be removed.
		_ = os.Chmod(filepath.Join(files, "mod"), 0o755)
		_ = os.Chmod(filepath.Join(target, "files/mod"), 0o755)
	})
	check.OK(t, Files(t.Context(), source, target))

	modes := map[string]os.FileMode{}
	check.OK(t, filepath.WalkDir(target, func(path string, _ fs.DirEntry, err error) error {
		info, infoErr := os.Lstat(path)
		check.OK(t, infoErr)
		modes[strings.TrimPrefix(path, target)] = info.Mode()
		return err
	}))
	delete(modes, "")
	link, err := os.Lstat(filepath.Join(files, "outside"))
	check.OK(t, err)
	check.Equal(t, "copies", map[string]os.FileMode{"/files": fs.ModeDir | 0o770, "/files/bin": fs.ModeDir | 0o755,
		"/files/bin/run": 0o755, "/files/link": 0o755, "/files/key": 0o400, "/files/outside": link.Mode(),
		"/files/mod": fs.ModeDir | 0o555, "/files/mod/x.go": 0o444}, modes)
	for _, name := range []string{"key", "mod"} {
		info, err := os.Stat(filepath.Join(target, "files", name))
		check.OK(t, err)
		check.Equal(t, "time of "+name, long, info.ModTime().UTC())
	}
	first, err := os.Stat(filepath.Join(target, "files/bin/run"))
	check.OK(t, err)
	second, err := os.Stat(filepath.Join(target, "files/link"))
	check.OK(t, err)
	check.Equal(t, "hard link", true, os.SameFile(first, second))
	to, err := os.Readlink(filepath.Join(target, "files/outside"))
	check.OK(t, err)
	check.Equal(t, "target of the link", "/etc/hostname", to)
}

func TestHolesStayHoles(t *testing.T) {
	source, target := volumes(t)
	name := filepath.Join(source, "files/disk")
	write(t, name, "begin", 0o644)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	check.OK(t, err)
	_, err = f.WriteAt([]byte("data"), 2*piece)
	check.OK(t, errors.Join(err, f.Truncate(4*piece), f.Close()))
	check.OK(t, Files(t.Context(), source, target))
	check.Equal(t, "same content", true, content(t, name) == content(t, target, "files/disk"))
	var st syscall.Stat_t
	check.OK(t, syscall.Stat(filepath.Join(target, "files/disk"), &st))
	if st.Blocks*512 > piece {
		t.Errorf("the copy takes %d bytes", st.Blocks*512)
	}
}

func TestNamesNeedNotBeUTF8(t *testing.T) {
	source, target := volumes(t)
	write(t, filepath.Join(source, "files/caf\xe9/\xff"), "x", 0o644)
	check.OK(t, Files(t.Context(), source, target))
	check.Equal(t, "content", "x", content(t, target, "files/caf\xe9/\xff"))
}

func TestFinishedCopyIsNotRepeated(t *testing.T) {
	source, target := volumes(t)
	write(t, filepath.Join(source, "files/a"), "first", 0o644)
	check.OK(t, Files(t.Context(), source, target))
	write(t, filepath.Join(source, "files/a"), "second", 0o644)
	check.OK(t, Files(t.Context(), source, target))
	check.Equal(t, "content", "first", content(t, target, "files/a"))
}

func TestInterruptedCopyBeginsAnew(t *testing.T) {
	source, target := volumes(t)
	write(t, filepath.Join(source, "files/a"), "whole", 0o644)
	half := filepath.Join(target, "copying/mod")
	write(t, filepath.Join(half, "half"), "ha", 0o444)
	check.OK(t, os.Chmod(half, 0o555))
	check.OK(t, Files(t.Context(), source, target))
	check.Equal(t, "content", "whole", content(t, target, "files/a"))
	for _, name := range []string{"files/mod", "copying"} {
		if _, err := os.Stat(filepath.Join(target, name)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}

func TestUnreadableFileIsNamedAndNothingIsShown(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads every file")
	}
	source, target := volumes(t)
	write(t, filepath.Join(source, "files/dir/locked"), "x", 0)
	err := Files(t.Context(), source, target)
	if err == nil || !strings.Contains(err.Error(), "dir/locked: permission denied") {
		t.Errorf("the copy says %v", err)
	}
	left, err := os.ReadDir(target)
	check.OK(t, err)
	check.Equal(t, "what is left", 0, len(left))
}

// canceledAfter is canceled after that many questions.
type canceledAfter struct {
	context.Context
	left int
}

func (c *canceledAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCanceledCopyLeavesNothing(t *testing.T) {
	source, target := volumes(t)
	write(t, filepath.Join(source, "files/a"), strings.Repeat("x", piece+1), 0o644)
	for asked := range 4 { // For the directory, the file, and its two pieces.
		if err := Files(&canceledAfter{t.Context(), asked}, source, target); !errors.Is(err, context.Canceled) {
			t.Errorf("the copy says %v", err)
		}
		left, err := os.ReadDir(target)
		check.OK(t, err)
		check.Equal(t, "what is left", 0, len(left))
	}
}

func TestWorkspaceThatNeverRanHasNoFiles(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	check.OK(t, Files(t.Context(), source, target))
	entries, err := os.ReadDir(filepath.Join(target, "files"))
	check.OK(t, err)
	check.Equal(t, "files", 0, len(entries))
}
