// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley.dev/parley/internal/workspace/agent/durable"
)

const (
	// maxRecords is how many changes with keys are kept. A chat repeats the calls of its last step only.
	maxRecords = 1000
	// maxRecordBytes bounds their size.
	maxRecordBytes = 16 << 20
)

// record describes a change. It is stored before the change, to recover from a crash, and kept after it, so that the
// change is not made again.
type record struct {
	// Request is a hash of the request.
	Request string `json:"request"`
	// Directories that the change creates, the outermost first.
	Directories []string `json:"directories,omitempty"`
	Files       []target `json:"files,omitempty"`
	// Answer to the request.
	Answer json.RawMessage `json:"answer"`
}

// target is a file that gets new content.
type target struct {
	// Path without links. Next has the new content until it is renamed. Backup keeps the old content meanwhile; empty:
	// none is needed.
	Path   string `json:"path"`
	Next   string `json:"next"`
	Backup string `json:"backup,omitempty"`
	// Before is the old file; nil: there was none.
	Before *identity `json:"before,omitempty"`
	// Size and Hash of the new content.
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

// identity tells one version of a file from others.
type identity struct {
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"`
}

// identityOf is nil if there is no file.
func identityOf(info fs.FileInfo) *identity {
	if info == nil {
		return nil
	}
	id := &identity{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Inode = stat.Ino
	}
	return id
}

func (id *identity) equals(other *identity) bool {
	return id == nil && other == nil || id != nil && other != nil && *id == *other
}

func hashOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(h, part) // It never fails.
	}
	return hex.EncodeToString(h.Sum(nil))
}

// state of a change. The name of its record ends with it.
type state string

const (
	unseen  state = ""
	begun   state = ".begun"
	made    state = ".made"
	unknown state = ".unknown"
)

// journal is a directory with a record of each change. That of a change without a key is removed after the change.
type journal string

func (j journal) path(name string, s state) string { return filepath.Join(string(j), name+string(s)) }

// isKey reports whether the name of a record is a key. Other names begin with a character that no key begins with.
func isKey(name string) bool { return !strings.HasPrefix(name, "_") }

// load returns the names of unfinished changes, and removes records that a crash left half written.
func (j journal) load() (open []string, err error) {
	list, err := os.ReadDir(string(j))
	if err != nil {
		return nil, fmt.Errorf("reading the journal of changes: %w", err)
	}
	for _, item := range list {
		if durable.Unfinished(item.Name()) {
			err = errors.Join(err, os.Remove(j.path(item.Name(), "")))
		} else if name, ok := strings.CutSuffix(item.Name(), string(begun)); ok && item.Type().IsRegular() {
			open = append(open, name)
		}
	}
	return open, err
}

// find returns the state of the change with a key. The record is nil if it cannot be read.
func (j journal) find(key string) (state, *record) {
	for _, s := range []state{made, unknown, begun} {
		r, err := j.read(key, s)
		switch {
		case err == nil:
			return s, r
		case !errors.Is(err, fs.ErrNotExist):
			return unknown, nil
		}
	}
	return unseen, nil
}

func (j journal) read(name string, s state) (*record, error) {
	f, err := durable.OpenRegular(j.path(name, s))
	if err != nil {
		return nil, fmt.Errorf("reading the record of a change: %w", err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	raw, err := io.ReadAll(io.LimitReader(f, maxRecordBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the record of a change: %w", err)
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("decoding the record of a change: %w", err)
	}
	return &r, nil
}

// begin stores a record before the change.
func (j journal) begin(name string, r *record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of a change: %w", err)
	}
	return durable.Write(j.path(name, begun), raw, 0o600)
}

// end stores the outcome of a change: made, unknown, or unseen if it was undone.
func (j journal) end(name string, s state) error {
	if s == unseen || !isKey(name) {
		return durable.Remove(j.path(name, begun))
	}
	if err := durable.Rename(j.path(name, begun), j.path(name, s)); err != nil {
		return err
	}
	return j.prune(name + string(s))
}

// prune removes the oldest records beyond the limits, but not the newest one: after a move to another node, whose clock
// is behind, it may seem the oldest.
func (j journal) prune(newest string) error {
	list, err := os.ReadDir(string(j))
	if err != nil {
		return fmt.Errorf("reading the journal of changes: %w", err)
	}
	kept := ended(list)
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(b.Name(), a.Name()))
	})
	var bytes int64
	for i, info := range kept {
		if bytes += info.Size(); info.Name() == newest || i < maxRecords && bytes <= maxRecordBytes {
			continue
		}
		if err := os.Remove(j.path(info.Name(), "")); err != nil {
			return fmt.Errorf("removing an old record: %w", err)
		}
	}
	return nil
}

// ended are the records of changes that have ended.
func ended(list []fs.DirEntry) (records []fs.FileInfo) {
	for _, item := range list {
		if info, err := item.Info(); err == nil && info.Mode().IsRegular() && filepath.Ext(info.Name()) != string(begun) {
			records = append(records, info)
		}
	}
	return records
}
