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
	"strings"
	"syscall"

	"parley.dev/parley/internal/workspace/agent/durable"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// newFile and newDirectory are the modes of what is created, less the agent's umask.
	newFile, newDirectory, newProgram fs.FileMode = 0o666, 0o777, 0o777
	// private is the mode of new content until it has that of the file.
	private fs.FileMode = 0o600
)

// apply makes the change of a record. The outcome is made, unseen if it failed and nothing has changed, or unknown.
func (m *committer) apply(r *record, c *change) (state, error) {
	if err := m.prepare(r, c); err != nil {
		return m.undo(r, nil), err
	}
	if err := m.replace(r, c); err != nil {
		return m.settle(r), err
	}
	m.removeTemporary(r)
	return made, nil
}

// prepare writes all new content to the disk. It changes no file.
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

// replace renames the new content.
func (m *committer) replace(r *record, c *change) error {
	for i, t := range r.Files {
		if err := m.do("rename", func() error { return m.dir.root.Rename(t.Next, t.Path) }); err != nil {
			return explain(c.files[i].place.asked, err)
		}
	}
	return m.do("bring directories to the disk", func() error { return m.syncDirs(r) })
}

// writeNext writes new content next to the file, with the file's mode and owner.
func (m *committer) writeNext(t target, n newContent) error {
	mode := private
	switch {
	case n.place.info != nil:
	case n.executable:
		mode = newProgram
	default:
		mode = newFile
	}
	return m.create(t.Next, mode, strings.NewReader(n.content), n.place.info)
}

// create writes a new file to the disk, with the mode and owner of another one if there is one.
func (m *committer) create(name string, mode fs.FileMode, content io.Reader, like fs.FileInfo) error {
	file, err := m.dir.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil && like != nil {
		err = copyMode(file, like)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// copyMode gives a file the permissions of another one, and its owner if the agent's user may do that.
func copyMode(file *os.File, from fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	own, ok := info.Sys().(*syscall.Stat_t)
	other, same := from.Sys().(*syscall.Stat_t)
	if ok && same && (own.Uid != other.Uid || own.Gid != other.Gid) {
		if file.Chown(int(other.Uid), int(other.Gid)) != nil {
			_ = file.Chown(-1, int(other.Gid)) // Otherwise the agent owns the file.
		}
	}
	return file.Chmod(from.Mode().Perm())
}

// prepareRename checks that a file is unchanged since its new content was made, and keeps the old content.
func (m *committer) prepareRename(t target) error {
	info, err := m.dir.root.Lstat(t.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !identityOf(info).equals(t.Before) {
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
	return m.create(to, private, source, info)
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

// removeTemporary removes the temporary files of a change.
func (m *committer) removeTemporary(r *record) {
	for _, t := range r.Files {
		for _, name := range []string{t.Next, t.Backup} {
			if name == "" {
				continue
			}
			err := m.do("remove a temporary file", func() error { return m.dir.root.Remove(name) })
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				m.log.Warn("A temporary file of a change could not be removed", "path", name, "error", err)
			}
		}
	}
}

// recover settles the changes that the agent began before it was restarted. A failure does not keep the agent from
// starting: a request for the same change reports it.
func (m *committer) recover() {
	open, err := m.journal.load()
	if err != nil {
		m.log.Warn("The journal of changes cannot be read", "error", err)
	}
	for _, name := range open {
		outcome := unknown
		if r, err := m.journal.read(name, begun); err != nil {
			m.log.Warn("The record of an unfinished change of files cannot be read", "error", err)
		} else {
			outcome = m.settle(r)
		}
		if outcome == unknown {
			m.log.Warn("The outcome of a change of files before a restart is unknown")
		}
		m.end(name, outcome)
	}
}

// settle finds out whether all files of a change were replaced. Otherwise it undoes the change, unless the files have
// changed since.
func (m *committer) settle(r *record) state {
	var replaced []target
	for _, t := range r.Files {
		switch m.stage(t) {
		case made:
			replaced = append(replaced, t)
		case unknown:
			m.removeTemporary(r)
			return unknown
		}
	}
	outcome := made
	if len(replaced) < len(r.Files) {
		outcome = m.undo(r, replaced)
	}
	m.removeTemporary(r)
	return outcome
}

// stage tells whether a file has its new content (made), the old one (unseen), or another one (unknown). A file whose
// new content has its own name was not replaced.
func (m *committer) stage(t target) state {
	if _, err := m.dir.root.Lstat(t.Next); err == nil {
		return unseen
	}
	info, err := m.dir.root.Lstat(t.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.Before == nil, err == nil && identityOf(info).equals(t.Before):
		return unseen
	case err == nil && info.Mode().IsRegular() && info.Size() == t.Size && m.hash(t.Path) == t.Hash:
		return made
	}
	return unknown
}

// hash of a file's content; empty: it cannot be read.
func (m *committer) hash(name string) string {
	file, _, err := m.dir.openRegular(name)
	if err != nil {
		return ""
	}
	defer closeRead(file)
	content, err := io.ReadAll(io.LimitReader(file, protocol.MaxFileBytes+1))
	if err != nil {
		return ""
	}
	return hashOf(string(content))
}

// undo restores the old content of replaced files, and removes new directories.
func (m *committer) undo(r *record, replaced []target) state {
	for _, t := range replaced {
		var err error
		if t.Before == nil {
			err = m.do("remove a new file", func() error { return m.dir.root.Remove(t.Path) })
		} else {
			err = m.do("rename back", func() error { return m.dir.root.Rename(t.Backup, t.Path) })
		}
		if err != nil {
			m.log.Warn("A change could not be undone", "path", t.Path, "error", err)
			return unknown
		}
	}
	m.removeTemporary(r)
	for _, dir := range slices.Backward(r.Directories) {
		if info, err := m.dir.root.Lstat(dir); err == nil && info.IsDir() {
			_ = m.dir.root.Remove(dir) // It stays if it is not empty.
		}
	}
	if err := m.syncDirs(r); err != nil {
		m.log.Warn("That a change was undone may not be on the disk", "error", err)
	}
	return unseen
}
