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
func (f *Files) recover() {
	open, err := f.journal.load()
	if err == nil {
		err = f.journal.clean()
	}
	if err != nil {
		f.log.Warn("Earlier changes of files are not known", "error", err)
	}
	for _, name := range open {
		outcome := unknown
		if r, err := f.journal.read(name, begun); err != nil {
			f.log.Warn("A change of files was begun before, and its record cannot be read", "error", err)
		} else {
			outcome = f.settle(r)
		}
		if outcome == unknown {
			f.log.Warn("A change of files began before a restart, and its outcome is unknown")
		}
		f.end(name, outcome)
	}
}

// settle finds out how far a change came: to its end; not so far, then what it did is undone; or nobody knows, because
// somebody else has changed the files since.
func (f *Files) settle(r *record) state {
	var replaced []target
	for _, t := range r.Files {
		switch f.stage(t) {
		case made:
			replaced = append(replaced, t)
		case unknown:
			f.removeLeftovers(r)
			return unknown
		}
	}
	outcome := made
	if len(replaced) < len(r.Files) {
		outcome = f.undo(r, replaced)
	}
	f.removeLeftovers(r)
	return outcome
}

// stage tells whether a file has its new content (made), the old one (unseen), or another one (unknown). As long as the
// new content has a name of its own, the file was not replaced.
func (f *Files) stage(t target) state {
	if _, err := f.root.Lstat(t.Next); err == nil {
		return unseen
	}
	info, err := f.root.Lstat(t.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.Before == nil, err == nil && identityOf(info).same(t.Before):
		return unseen
	case err == nil && info.Mode().IsRegular() && info.Size() == t.Size && f.hash(t.Path) == t.Hash:
		return made
	}
	return unknown
}

// hash is that of a file's content, or empty.
func (f *Files) hash(name string) string {
	file, _, err := f.openRegular(name)
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
func (f *Files) undo(r *record, replaced []target) state {
	for _, t := range replaced {
		var err error
		if t.Before == nil {
			err = f.do("remove a new file", func() error { return f.root.Remove(t.Path) })
		} else {
			err = f.do("rename back", func() error { return f.root.Rename(t.Backup, t.Path) })
		}
		if err != nil {
			f.log.Warn("A change could not be undone", "path", t.Path, "error", err)
			return unknown
		}
	}
	f.removeLeftovers(r)
	for _, dir := range slices.Backward(r.Directories) {
		if info, err := f.root.Lstat(dir); err == nil && info.IsDir() {
			_ = f.root.Remove(dir) // One that somebody has put something into stays.
		}
	}
	if err := f.syncDirs(r); err != nil {
		f.log.Warn("That a change was undone may not be on the disk", "error", err)
	}
	return unseen
}
