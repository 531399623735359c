// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/internal/workspace/agent/durable"
)

const (
	// remembered is how many changes are kept, so that they are not made twice. A chat repeats the call of its last step.
	remembered = 1000
	// rememberedBytes bounds what these take.
	rememberedBytes = 16 << 20
)

// state is what has become of a change. It is how the name of its record ends.
type state string

const (
	unseen  state = ""
	begun   state = ".begun"
	made    state = ".made"
	unknown state = ".unknown"
)

// journal keeps a record of each change in a directory. The record of a change without a key is kept while the change
// is being made. Only who makes changes uses it.
type journal struct {
	dir string
	// entries are the changes with keys, the oldest first.
	entries []entry
	bytes   int64
}

type entry struct {
	key   string
	state state
	size  int64
}

func openJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory that remembers changes: %w", err)
	}
	return &journal{dir: dir}, nil
}

// load reads which changes there were, and returns the names of those that were begun and not ended.
func (j *journal) load() (open []string, err error) {
	list, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("reading which changes there were: %w", err)
	}
	ages := map[string]time.Time{}
	for _, item := range list {
		name, s := split(item.Name())
		info, err := item.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
			continue
		case s == begun:
			open = append(open, name)
		case s == made || s == unknown:
			ages[name] = info.ModTime()
			j.entries = append(j.entries, entry{name, s, info.Size()})
			j.bytes += info.Size()
		}
	}
	slices.SortFunc(j.entries, func(a, b entry) int {
		return cmp.Or(ages[a.key].Compare(ages[b.key]), cmp.Compare(a.key, b.key))
	})
	return open, nil
}

// split takes the name of a record's file apart.
func split(file string) (name string, s state) {
	for _, s := range []state{begun, made, unknown} {
		if name, ok := strings.CutSuffix(file, string(s)); ok {
			return name, s
		}
	}
	return file, unseen
}

func (j *journal) path(name string, s state) string { return filepath.Join(j.dir, name+string(s)) }

// keyed reports whether the name of a record is a key. Names that the journal gives begin with a character that keys
// do not begin with.
func keyed(name string) bool { return !strings.HasPrefix(name, "_") }

// find returns what has become of the change with a key. The record is nil if it is lost.
func (j *journal) find(key string) (state, *record) {
	at := slices.IndexFunc(j.entries, func(e entry) bool { return e.key == key })
	if at < 0 {
		return unseen, nil
	}
	r, err := j.read(key, j.entries[at].state)
	if err != nil {
		return unknown, nil
	}
	return j.entries[at].state, r
}

func (j *journal) read(name string, s state) (*record, error) {
	raw, err := os.ReadFile(j.path(name, s))
	if err != nil {
		return nil, fmt.Errorf("reading the record of a change: %w", err)
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("decoding the record of a change: %w", err)
	}
	return &r, nil
}

// begin keeps a record before anything is done.
func (j *journal) begin(name string, r *record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of a change: %w", err)
	}
	return durable.Write(j.path(name, begun), raw, 0o600)
}

// end says what has become of a change: made, unknown, or unseen if it was undone.
func (j *journal) end(name string, s state) error {
	if s == unseen || !keyed(name) {
		return durable.Remove(j.path(name, begun))
	}
	var length int64
	if info, err := os.Stat(j.path(name, begun)); err == nil {
		length = info.Size()
	}
	j.entries = append(j.entries, entry{name, s, length})
	j.bytes += length
	if err := durable.Rename(j.path(name, begun), j.path(name, s)); err != nil {
		j.entries[len(j.entries)-1].state = begun
		return err
	}
	return j.forget()
}

// forget removes the oldest records beyond what is kept.
func (j *journal) forget() error {
	for len(j.entries) > remembered || j.bytes > rememberedBytes && len(j.entries) > 1 {
		oldest := j.entries[0]
		j.entries = j.entries[1:]
		j.bytes -= oldest.size
		if err := os.Remove(j.path(oldest.key, oldest.state)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("forgetting an old change: %w", err)
		}
	}
	return nil
}

// clean removes what a crash has left half written.
func (j *journal) clean() error {
	return filepath.WalkDir(j.dir, func(path string, item fs.DirEntry, err error) error {
		if err == nil && !item.IsDir() && durable.Unfinished(path) {
			err = os.Remove(path)
		}
		return err
	})
}
