// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package copying copies the files of a workspace to the volume of another one, while commands may change them.
package copying

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/durable"
	"parley.dev/parley/internal/workspace/protocol"
)

// piece is how much is copied before a cancellation is noticed.
const piece = 16 << 20

// Files copies the files that one volume has to another one, which gets all of them or none. It does nothing if the
// other one has files.
func Files(ctx context.Context, source, target string) error {
	files, unfinished := filepath.Join(target, protocol.FilesPath), filepath.Join(target, "copying")
	if _, err := os.Lstat(files); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := discard(unfinished) // A copy was interrupted.
	if err == nil {
		err = copyTree(ctx, filepath.Join(source, protocol.FilesPath), unfinished)
	}
	if err == nil {
		err = durable.Rename(unfinished, files)
	}
	if err != nil { // What is left would fill the volume.
		return fmt.Errorf("copying the files of a workspace: %w", errors.Join(err, discard(unfinished)))
	}
	return nil
}

// discard removes an unfinished copy, also of directories that allow no writing.
func discard(unfinished string) error {
	err := filepath.WalkDir(unfinished, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(unfinished)
}

// copyTree copies what is in a directory, if there is one, and brings it to the disk. Links cannot lead out of an
// os.Root, whatever commands do meanwhile.
func copyTree(ctx context.Context, source, target string) error {
	if err := os.Mkdir(target, 0o700); err != nil {
		return err
	}
	from, err := os.OpenRoot(source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // It was only read.
	to, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	t := tree{ctx: ctx, from: from, to: to, links: map[inode]string{}}
	if err = t.visit("."); err == nil {
		err = t.finish()
	}
	return errors.Join(err, to.Close())
}

// tree is a copy that is being made.
type tree struct {
	ctx      context.Context
	from, to *os.Root
	// dirs get their modes and times last: they may not allow writing.
	dirs []dir
	// links have the first names of files that have several.
	links map[inode]string
}

type inode struct{ device, number uint64 }

type dir struct {
	name string
	info fs.FileInfo
}

// visit copies one entry, and what is in it. What is removed meanwhile is not copied.
func (t *tree) visit(name string) error {
	err := t.ctx.Err()
	if err == nil {
		err = t.copyEntry(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyEntry copies a file, a directory or a symbolic link. Pipes, sockets and devices are of use only to what runs.
func (t *tree) copyEntry(name string) error {
	info, err := t.from.Lstat(name)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return t.copyFile(name)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := t.from.Readlink(name)
		if err != nil {
			return err
		}
		return t.to.Symlink(target, name)
	case !info.IsDir():
		return nil
	case name != ".":
		err = t.to.Mkdir(name, 0o700)
	}
	if err != nil {
		return err
	}
	t.dirs = append(t.dirs, dir{name, info})
	return t.copyEntries(name)
}

// copyEntries copies what is in a directory. fs.WalkDir takes no names that are not UTF-8.
func (t *tree) copyEntries(name string) error {
	d, err := t.from.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0) // It may be a pipe by now.
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		if err := t.visit(filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) copyFile(name string) error {
	in, err := t.from.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // It may be a pipe by now.
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // It was only read.
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	isLink, err := t.link(name, info)
	if err != nil || isLink {
		return err
	}
	out, err := t.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = t.copyContent(out, in, info.Size()) // A command may write faster than this reads.
	if err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return err
	}
	return t.to.Chtimes(name, time.Time{}, info.ModTime())
}

// link makes the name a link to the copy of a file that another name has in the tree, and reports whether it did.
func (t *tree) link(name string, info fs.FileInfo) (bool, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return false, nil
	}
	of := inode{st.Dev, st.Ino}
	if first, ok := t.links[of]; ok {
		return true, t.to.Link(first, name)
	}
	t.links[of] = name
	return false, nil
}

// copyContent copies the first bytes of a file. Holes stay holes.
func (t *tree) copyContent(out, in *os.File, size int64) error {
	for at := int64(0); at < size; {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		begin, end := nextData(in, at, size)
		if _, err := in.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		_, err := io.CopyN(out, in, end-begin)
		if errors.Is(err, io.EOF) { // It was truncated meanwhile.
			return nil
		}
		if err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(size)
}

// nextData is where the next data begin and end, at most one piece of them.
func nextData(in *os.File, at, size int64) (begin, end int64) {
	begin, err := in.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // The rest is a hole.
		return size, size
	case err != nil: // The filesystem does not know.
		begin = at
	}
	end, err = in.Seek(begin, unix.SEEK_HOLE)
	if err != nil {
		end = size
	}
	begin = min(begin, size)
	return begin, min(end, size, begin+piece)
}

func (t *tree) finish() error {
	var errs []error
	for _, d := range slices.Backward(t.dirs) {
		errs = append(errs, t.to.Chmod(d.name, d.info.Mode()), t.to.Chtimes(d.name, time.Time{}, d.info.ModTime()))
	}
	top, err := t.to.Open(".")
	if err == nil {
		err = errors.Join(unix.Syncfs(int(top.Fd())), top.Close())
	}
	return errors.Join(append(errs, err)...)
}
