// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io"
	"io/fs"
	"slices"

	"parley.dev/parley/internal/workspace/protocol"
)

// recover settles the changes that a former life of the agent has begun and not ended. Whatever goes wrong, the agent
// starts: what is not known is said to whoever asks for the change again.
func (m *committer) recover() {
	open, err := m.journal.load()
	if err == nil {
		err = m.journal.clean()
	}
	if err != nil {
		m.log.Warn("Earlier changes of files are not known", "error", err)
	}
	for _, name := range open {
		outcome := unknown
		if r, err := m.journal.read(name, begun); err != nil {
			m.log.Warn("A change of files was begun before, and its record cannot be read", "error", err)
		} else {
			outcome = m.settle(r)
		}
		if outcome == unknown {
			m.log.Warn("A change of files began before a restart, and its outcome is unknown")
		}
		m.end(name, outcome)
	}
}

// settle finds out how far a change came: to its end; not so far, then what it did is undone; or nobody knows, because
// somebody else has changed the files since.
func (m *committer) settle(r *record) state {
	var replaced []target
	for _, t := range r.Files {
		switch m.stage(t) {
		case made:
			replaced = append(replaced, t)
		case unknown:
			m.removeLeftovers(r)
			return unknown
		}
	}
	outcome := made
	if len(replaced) < len(r.Files) {
		outcome = m.undo(r, replaced)
	}
	m.removeLeftovers(r)
	return outcome
}

// stage tells whether a file has its new content (made), the old one (unseen), or another one (unknown). As long as the
// new content has a name of its own, the file was not replaced.
func (m *committer) stage(t target) state {
	if _, err := m.dir.root.Lstat(t.Next); err == nil {
		return unseen
	}
	info, err := m.dir.root.Lstat(t.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.Before == nil, err == nil && identityOf(info).same(t.Before):
		return unseen
	case err == nil && info.Mode().IsRegular() && info.Size() == t.Size && m.hash(t.Path) == t.Hash:
		return made
	}
	return unknown
}

// hash is that of a file's content, or empty.
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

// undo gives files that were replaced their old content back, and removes directories that were made.
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
	m.removeLeftovers(r)
	for _, dir := range slices.Backward(r.Directories) {
		if info, err := m.dir.root.Lstat(dir); err == nil && info.IsDir() {
			_ = m.dir.root.Remove(dir) // One that somebody has put something into stays.
		}
	}
	if err := m.syncDirs(r); err != nil {
		m.log.Warn("That a change was undone may not be on the disk", "error", err)
	}
	return unseen
}
