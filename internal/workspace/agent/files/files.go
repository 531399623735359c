// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
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
	root *os.Root
	// bases are the absolute names of the directory, in elements: the one that was given, and the one without links.
	bases   [][]string
	journal *journal
	// changing holds a value while a change is being made.
	changing chan struct{}
	log      *slog.Logger
	before   func(step string) error
	// searchTime bounds a search.
	searchTime time.Duration
}

// Open opens a workspace's files. A change that a former life of the agent has begun and not ended is made undone, or
// remembered as one whose outcome nobody knows.
func Open(o Options) (*Files, error) {
	directory, err := filepath.EvalSymlinks(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("finding the workspace's directory: %w", err)
	}
	f := &Files{changing: make(chan struct{}, 1), log: o.Log, before: o.before,
		searchTime: searchTime}
	for _, base := range []string{o.Directory, directory} {
		f.bases = append(f.bases, elements(base))
	}
	f.bases = slices.CompactFunc(f.bases, slices.Equal)
	if f.before == nil {
		f.before = func(string) error { return nil }
	}
	if f.log == nil {
		f.log = slog.Default()
	}
	if f.journal, err = openJournal(filepath.Join(o.State, "changes")); err != nil {
		return nil, err
	}
	if f.root, err = os.OpenRoot(directory); err != nil {
		return nil, fmt.Errorf("opening the workspace's directory: %w", err)
	}
	f.recover()
	return f, nil
}

// Close waits for a change that is being made, and closes the directory.
func (f *Files) Close() error {
	f.changing <- struct{}{}
	defer func() { <-f.changing }()
	if err := f.root.Close(); err != nil {
		return fmt.Errorf("closing the workspace's directory: %w", err)
	}
	return nil
}

// lock waits until no other change is being made.
func (f *Files) lock(ctx context.Context) error {
	select {
	case f.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Files) unlock() { <-f.changing }
