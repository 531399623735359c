// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options say where the files are.
type Options struct {
	// Directory of the workspace's files, absolute. It must exist.
	Directory string
	// State is the directory that remembers changes, absolute. It is made if it is missing.
	State string
	// Log, default slog.Default.
	Log *slog.Logger

	// before is told what is about to be done to the disk, and can prevent it. Tests use it.
	before func(step string) error
}

// Files are the files of one workspace. It is safe for concurrent use; changes are made one after the other.
type Files struct {
	dir       *directory
	committer *committer
	// searchTime bounds a search.
	searchTime time.Duration
}

// Open opens a workspace's files. A change that a former life of the agent has begun and not ended is made undone, or
// remembered as one whose outcome nobody knows.
func Open(o Options) (*Files, error) {
	path, err := filepath.EvalSymlinks(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("finding the workspace's directory: %w", err)
	}
	dir := &directory{bases: slices.CompactFunc([][]string{elements(o.Directory), elements(path)}, slices.Equal)}
	if o.before == nil {
		o.before = func(string) error { return nil }
	}
	changes, err := openJournal(filepath.Join(o.State, "changes"))
	if err != nil {
		return nil, err
	}
	if dir.root, err = os.OpenRoot(path); err != nil {
		return nil, fmt.Errorf("opening the workspace's directory: %w", err)
	}
	m := &committer{dir: dir, journal: changes, log: cmp.Or(o.Log, slog.Default()), before: o.before,
		changing: make(chan struct{}, 1)}
	m.recover()
	return &Files{dir: dir, committer: m, searchTime: searchTime}, nil
}

// Close waits for a change that is being made, and closes the directory.
func (f *Files) Close() error {
	f.committer.changing <- struct{}{}
	defer func() { <-f.committer.changing }()
	if err := f.dir.root.Close(); err != nil {
		return fmt.Errorf("closing the workspace's directory: %w", err)
	}
	return nil
}
