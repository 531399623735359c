// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"parley.dev/parley/internal/workspace/protocol"
)

// Archive is a file, or a directory with what is in it, that can be written as a tar archive.
type Archive struct {
	dir *directory
	at  place
}

// Archive finds the file or directory at a path.
func (f *Files) Archive(asked string) (*Archive, error) {
	at, err := f.dir.resolve(asked)
	switch {
	case err != nil:
		return nil, err
	case at.info == nil:
		return nil, explain(asked, fs.ErrNotExist)
	case !at.info.IsDir() && !at.info.Mode().IsRegular():
		return nil, notRegular(asked, at.info.Mode())
	}
	return &Archive{f.dir, at}, nil
}

// Write writes the archive. A file has its own name in it, and a directory has the name "./". An entry that cannot be
// read is empty, and says why in the record protocol.ArchiveError. Pipes, sockets and devices are left out.
func (a *Archive) Write(ctx context.Context, to io.Writer) error {
	w := tar.NewWriter(to)
	name := "."
	if !a.at.info.IsDir() {
		name = path.Base(a.at.path)
	}
	if err := a.add(ctx, w, a.at.path, name); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("writing the end of the archive: %w", err)
	}
	return nil
}

// add writes one entry, and what is in it. What is removed meanwhile is left out.
func (a *Archive) add(ctx context.Context, w *tar.Writer, at, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := a.dir.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unreadable(w, name, err)
	case info.IsDir():
		return a.addDirectory(ctx, w, at, name, info)
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := a.dir.root.Readlink(at)
		if err != nil {
			return unreadable(w, name, err)
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777,
			ModTime: info.ModTime()})
	case info.Mode().IsRegular():
		return a.addFile(w, at, name)
	}
	return nil
}

// entriesAtOnce bounds the memory for a directory.
const entriesAtOnce = 1000

func (a *Archive) addDirectory(ctx context.Context, w *tar.Writer, at, name string, info fs.FileInfo) error {
	d, err := a.dir.root.OpenFile(at, os.O_RDONLY|syscall.O_DIRECTORY|openQuietly, 0)
	if err != nil {
		return unreadable(w, name, err)
	}
	defer closeRead(d)
	header := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(info.Mode().Perm()),
		ModTime: info.ModTime()}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	for {
		entries, err := d.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if err := a.add(ctx, w, path.Join(at, e.Name()), path.Join(name, e.Name())); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unreadable(w, name, err)
		}
	}
}

// addFile writes as much of a file as it has at first. A command may write it meanwhile.
func (a *Archive) addFile(w *tar.Writer, at, name string) error {
	file, info, err := a.dir.openRegular(at)
	if err != nil {
		return unreadable(w, name, err)
	}
	defer closeRead(file)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm()),
		ModTime: info.ModTime()}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	content := &padded{from: file, left: info.Size()}
	if _, err := io.Copy(w, content); err != nil {
		return err
	}
	if content.err != nil {
		return unreadable(w, name, fmt.Errorf("it has become shorter while it was read, or cannot be read: %w", content.err))
	}
	return nil
}

// padded reads a given number of bytes. It returns zeros after an error, so that the archive can continue with the next
// file.
type padded struct {
	from io.Reader
	left int64
	err  error
}

// Read implements io.Reader.
func (r *padded) Read(p []byte) (n int, err error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.left)]
	if r.err == nil {
		n, r.err = r.from.Read(p)
	}
	if r.err != nil && n == 0 {
		clear(p)
		n = len(p)
	}
	r.left -= int64(n)
	return n, nil
}

// unreadable writes an entry that says why it could not be read. What was removed meanwhile is left out.
func unreadable(w *tar.Writer, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name,
		PAXRecords: map[string]string{protocol.ArchiveError: explain(name, err).Error()}})
}
