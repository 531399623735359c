// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package durable writes small files so that they survive a crash, whole or not at all. Unlike renameio it syncs the
// directory, too, and an unfinished file is known by its name after a crash.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// unfinished ends the name of a file that is being written.
const unfinished = ".unfinished"

// Unfinished reports whether a name is that of a file that a crash has left half written.
func Unfinished(name string) bool { return filepath.Ext(name) == unfinished }

// Write makes or replaces a file. When it returns nil, the content is on the disk. When it does not, the file is as
// before, or already the new one. Only one Write of a name may be at work at a time.
func Write(path string, content []byte, mode os.FileMode) error {
	next := path + unfinished
	if err := write(next, content, mode); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), remove(next))
	}
	return Rename(next, path)
}

func write(path string, content []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err = file.Write(content); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Rename gives a file another name in the same directory. When it returns nil, that is on the disk.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("renaming: %w", err)
	}
	return syncDir(filepath.Dir(to))
}

// Remove removes a file, if there is one.
func Remove(path string) error {
	if err := remove(path); err != nil {
		return fmt.Errorf("removing: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening a directory: %w", err)
	}
	return errors.Join(Sync(dir), dir.Close())
}

// Sync brings what has changed in a directory to the disk, where its file system can.
func Sync(dir *os.File) error {
	err := dir.Sync()
	if err == nil || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return fmt.Errorf("bringing a directory to the disk: %w", err)
}

// OpenRegular opens a file to read it. Commands run as the same user and may have put something else in its place,
// which is not followed and not waited for.
func OpenRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
