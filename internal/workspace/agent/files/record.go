// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"syscall"
)

// record is what the journal keeps of a change: before it is made, so that what a crash leaves behind can be put right,
// and afterwards, so that it is not made again.
type record struct {
	// Request is a hash of what was asked for.
	Request string `json:"request"`
	// Directories that the change makes, the outermost first.
	Directories []string `json:"directories,omitempty"`
	Files       []target `json:"files,omitempty"`
	// Answer of the change.
	Answer json.RawMessage `json:"answer"`
}

// target is a file that gets new content.
type target struct {
	// Path without links. Next has the new content until it is renamed, Backup keeps the old one meanwhile; empty: none.
	Path   string `json:"path"`
	Next   string `json:"next"`
	Backup string `json:"backup,omitempty"`
	// Before is what was there; nil: nothing was.
	Before *identity `json:"before,omitempty"`
	// Size and Hash of the new content.
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

// identity tells one file, and one state of it, from others.
type identity struct {
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"`
}

// identityOf is nil if nothing is there.
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

func (id *identity) same(other *identity) bool {
	return id == nil && other == nil || id != nil && other != nil && *id == *other
}

func hashOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(h, part) // A hash takes all.
	}
	return hex.EncodeToString(h.Sum(nil))
}
