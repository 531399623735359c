// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/workspace/agent/durable"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxRecordBytes bounds what is read as a record. Its texts are bounded where it is made.
	maxRecordBytes = 1 << 20
	recordName     = "record.json"
	// maxNumber is more commands than are ever started. Directories of greater numbers are ignored.
	maxNumber = 1 << 40
	// reserveBytes are set aside so that a command can be recorded, and started, when the storage is full: it may be
	// the one that makes room.
	reserveBytes = 1 << 20
)

// record is what is on disk of a command.
type record struct {
	protocol.Process
	// Starting is true until it is known whether it was forked.
	Starting bool `json:"starting,omitempty"`
}

// store keeps records: DIR/processes/ID/record.json, next to the outputs.
type store struct {
	dir string
	// lock is held as long as it is open.
	lock *os.File
}

func (s *store) processes() string       { return filepath.Join(s.dir, "processes") }
func (s *store) place(id string) string  { return filepath.Join(s.processes(), id) }
func (s *store) record(id string) string { return filepath.Join(s.place(id), recordName) }
func (s *store) reserve() string         { return filepath.Join(s.dir, "reserve") }

// open makes the directories, and locks them: two pods may have the same volume for a while. It waits for the other one
// until ctx is done.
func (s *store) open(ctx context.Context) error {
	if err := os.MkdirAll(s.processes(), 0o700); err != nil {
		return fmt.Errorf("making the directory of commands: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("locking the state directory: %w", err)
	}
	isOther := func(err error) bool { return !errors.Is(err, unix.EWOULDBLOCK) }
	_, err = retry.Do(ctx, retry.Lock, func(context.Context) (struct{}, error) {
		return struct{}{}, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}, isOther)
	if err != nil && !isOther(err) {
		return errors.Join(fmt.Errorf("locking the state directory, which another agent uses: %w", err), lock.Close())
	}
	s.lock = lock // Some network file systems have no locks, and work without.
	s.setAside()
	return nil
}

// setAside makes the reserve if it is not there and there is room.
func (s *store) setAside() {
	f, err := os.OpenFile(s.reserve(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, reserveBytes)
	if errors.Join(err, f.Close()) != nil {
		_ = os.Remove(s.reserve()) // It may not exist.
	}
}

// create puts the intent to start a command on disk.
func (s *store) create(r record) error {
	return s.makingRoom(func() error {
		// What has its name belongs to no command.
		if err := os.RemoveAll(s.place(r.ID)); err != nil {
			return fmt.Errorf("making the directory of a command: %w", err)
		}
		if err := os.Mkdir(s.place(r.ID), 0o700); err != nil {
			return fmt.Errorf("making the directory of a command: %w", err)
		}
		if err := s.write(r); err != nil {
			return err
		}
		all, err := os.Open(s.processes())
		if err != nil {
			return fmt.Errorf("making the directory of a command: %w", err)
		}
		return errors.Join(durable.Sync(all), all.Close())
	})
}

// save puts a record in the place of the former one.
func (s *store) save(r record) error { return s.makingRoom(func() error { return s.write(r) }) }

// sketch puts a record in the place of the former one without waiting for the disk: if the node ends, either is right.
func (s *store) sketch(r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of a command: %w", err)
	}
	next := s.record(r.ID) + ".sketch"
	if err := os.WriteFile(next, raw, 0o600); err != nil {
		return fmt.Errorf("writing the record of a command: %w", err)
	}
	if err := os.Rename(next, s.record(r.ID)); err != nil {
		return fmt.Errorf("writing the record of a command: %w", err)
	}
	return nil
}

// makingRoom does it again without the reserve when the storage is full.
func (s *store) makingRoom(do func() error) error {
	err := do()
	if !isFull(err) || os.Remove(s.reserve()) != nil {
		return err
	}
	return do()
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func (s *store) write(r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of a command: %w", err)
	}
	return durable.Write(s.record(r.ID), raw, 0o600)
}

// remove forgets a command: first the record, without which the rest is nothing.
func (s *store) remove(id string) error {
	_ = os.Remove(s.record(id)) // If it cannot be removed, the directory cannot.
	if err := os.RemoveAll(s.place(id)); err != nil {
		return fmt.Errorf("forgetting a command: %w", err)
	}
	return nil
}

// ids are the names of all that could be a command.
func (s *store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.processes())
	if err != nil {
		return nil, fmt.Errorf("looking for commands: %w", err)
	}
	var ids []string
	for _, entry := range entries {
		if number, ok := numberOf(entry.Name()); ok && number <= maxNumber {
			ids = append(ids, entry.Name())
		}
	}
	return ids, nil
}

func (s *store) load(id string) (record, error) {
	f, err := durable.OpenRegular(s.record(id))
	if err != nil {
		return record{}, fmt.Errorf("reading the record of a command: %w", err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	raw, err := io.ReadAll(io.LimitReader(f, maxRecordBytes))
	if err != nil {
		return record{}, fmt.Errorf("reading the record of a command: %w", err)
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return record{}, fmt.Errorf("decoding the record of a command: %w", err)
	}
	if r.ID != id {
		return record{}, fmt.Errorf("the record of %s is that of %.40q", id, r.ID)
	}
	return r, nil
}
