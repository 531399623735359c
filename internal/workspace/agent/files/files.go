// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads, writes, edits and searches the files of a workspace for the model of a chat.
//
// Every access goes through one os.Root, so that neither paths nor links lead out of the workspace's directory. Only
// regular files and directories are opened, so that no pipe or device blocks a request. A file is replaced as a whole,
// by a rename. All files of one request are replaced or none, also if the agent crashes. A change with a key is made
// once, and a repeated request gets the same answer. Line endings, a missing last newline and modes stay.
//
// Errors are *protocol.Error, except those of a context.
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

// Options of Open.
type Options struct {
	// Directory of the workspace's files, absolute. It must exist.
	Directory string
	// State is the directory of the journal of changes, absolute. It is created if it is missing.
	State string
	// Log; default: slog.Default.
	Log *slog.Logger

	// before is called before each step on the disk, and can prevent it. Tests use it.
	before func(step string) error
}

// Files are the files of one workspace. It is safe for concurrent use; changes are made one after the other.
type Files struct {
	dir       *directory
	committer *committer
	// searchTime bounds a search.
	searchTime time.Duration
}

// Open opens a workspace's files. A change that a restart of the agent interrupted is completed or undone, or has an
// unknown outcome.
func Open(o Options) (*Files, error) {
	path, err := filepath.EvalSymlinks(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("finding the workspace's directory: %w", err)
	}
	dir := &directory{bases: slices.CompactFunc([][]string{elements(o.Directory), elements(path)}, slices.Equal)}
	if o.before == nil {
		o.before = func(string) error { return nil }
	}
	changes := filepath.Join(o.State, "changes")
	if err := os.MkdirAll(changes, 0o700); err != nil {
		return nil, fmt.Errorf("making the journal of changes: %w", err)
	}
	if dir.root, err = os.OpenRoot(path); err != nil {
		return nil, fmt.Errorf("opening the workspace's directory: %w", err)
	}
	m := &committer{dir: dir, journal: journal(changes), log: cmp.Or(o.Log, slog.Default()), before: o.before,
		changing: make(chan struct{}, 1)}
	m.recover()
	return &Files{dir: dir, committer: m, searchTime: searchTime}, nil
}

// Close waits for the current change, and closes the directory.
func (f *Files) Close() error {
	f.committer.changing <- struct{}{}
	defer func() { <-f.committer.changing }()
	if err := f.dir.root.Close(); err != nil {
		return fmt.Errorf("closing the workspace's directory: %w", err)
	}
	return nil
}
