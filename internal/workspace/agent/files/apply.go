// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"parley.dev/parley/internal/workspace/agent/durable"
)

const (
	// newFile and newDirectory are the modes of what is made, less the agent's umask.
	newFile, newDirectory fs.FileMode = 0o666, 0o777
	// private is the mode of a new content until it has that of the file.
	private fs.FileMode = 0o600
)

// apply does what a record says, and says what became of it: made, unseen if it failed and everything is as it was, or
// unknown.
func (m *committer) apply(r *record, c *change) (state, error) {
	if err := m.prepare(r, c); err != nil {
		return m.undo(r, nil), err
	}
	if err := m.replace(r, c); err != nil {
		return m.settle(r), err
	}
	m.removeLeftovers(r)
	return made, nil
}

// prepare brings all that is new to the disk. No file is changed by it.
func (m *committer) prepare(r *record, c *change) error {
	for _, dir := range r.Directories {
		if err := m.do("make a directory", func() error { return m.dir.root.MkdirAll(dir, newDirectory) }); err != nil {
			return explain(dir, err)
		}
	}
	for i, t := range r.Files {
		if err := m.do("write new content", func() error { return m.writeNext(t, c.files[i]) }); err != nil {
			return explain(c.files[i].place.asked, err)
		}
	}
	for i, t := range r.Files {
		if err := m.prepareRename(t); err != nil {
			return explain(c.files[i].place.asked, err)
		}
	}
	return nil
}

// replace gives the new contents the files' names.
func (m *committer) replace(r *record, c *change) error {
	for i, t := range r.Files {
		if err := m.do("rename", func() error { return m.dir.root.Rename(t.Next, t.Path) }); err != nil {
			return explain(c.files[i].place.asked, renameFault(err))
		}
	}
	return m.do("bring directories to the disk", func() error { return m.syncDirs(r) })
}

// writeNext brings new content to the disk, beside the file, with the file's mode and owner.
func (m *committer) writeNext(t target, n newContent) error {
	mode := private
	if n.place.info == nil {
		mode = newFile
	}
	file, err := m.dir.root.OpenFile(t.Next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, n.content)
	if err == nil && n.place.info != nil {
		err = takeAfter(file, n.place.info)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// takeAfter gives a file the owner, as far as the agent's user may, and the permissions of another one.
func takeAfter(file *os.File, other fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	own, ok := info.Sys().(*syscall.Stat_t)
	was, same := other.Sys().(*syscall.Stat_t)
	if ok && same && (own.Uid != was.Uid || own.Gid != was.Gid) {
		if file.Chown(int(was.Uid), int(was.Gid)) != nil {
			_ = file.Chown(-1, int(was.Gid)) // The file is the agent's then.
		}
	}
	return file.Chmod(other.Mode().Perm())
}

// prepareRename looks whether a file is still what it was when its new content was made, and keeps the old one.
func (m *committer) prepareRename(t target) error {
	info, err := m.dir.root.Lstat(t.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !identityOf(info).same(t.Before) {
		return fmt.Errorf("%q: %w", t.Path, errChanged)
	}
	if t.Backup == "" {
		return nil
	}
	return m.do("keep old content", func() error {
		if m.dir.root.Link(t.Path, t.Backup) == nil {
			return nil
		}
		return m.copy(t.Path, t.Backup) // Some file systems have no hard links.
	})
}

func (m *committer) copy(from, to string) error {
	source, info, err := m.dir.openRegular(from)
	if err != nil {
		return err
	}
	defer closeRead(source)
	file, err := m.dir.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return err
	}
	if _, err = io.Copy(file, source); err == nil {
		err = takeAfter(file, info)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// renameFault says of a rename onto a directory what a write to one says.
func renameFault(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return syscall.EISDIR
	}
	return err
}

// syncDirs brings the renames to the disk.
func (m *committer) syncDirs(r *record) error {
	var dirs []string
	for _, dir := range r.Directories {
		dirs = append(dirs, path.Dir(dir))
	}
	for _, t := range r.Files {
		dirs = append(dirs, path.Dir(t.Path))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		file, err := m.dir.root.Open(dir)
		if err == nil {
			err = errors.Join(durable.Sync(file), file.Close())
		}
		if err != nil {
			return explain(dir, err)
		}
	}
	return nil
}

// removeLeftovers removes what a change needs only while it is being made.
func (m *committer) removeLeftovers(r *record) {
	for _, t := range r.Files {
		for _, name := range []string{t.Next, t.Backup} {
			if name == "" {
				continue
			}
			err := m.do("remove a leftover", func() error { return m.dir.root.Remove(name) })
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				m.log.Warn("A leftover of a change could not be removed", "path", name, "error", err)
			}
		}
	}
}
