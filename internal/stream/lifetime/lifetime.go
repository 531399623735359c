// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifetime lets a program of a pod wait for the end of another one, which holds a lock on a shared file. The
// kernel releases the lock, however that program ends.
package lifetime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// pollInterval is how often AwaitEnd tries the lock. It waits only while a pod is being removed.
const pollInterval = 50 * time.Millisecond

// Hold locks the file until this process ends, or end is called. It creates the file and its directory if they are
// missing.
func Hold(path string) (end func(), err error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// AwaitEnd waits until no process holds the lock on the file, which need not exist, or ctx is done.
func AwaitEnd(ctx context.Context, path string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

func open(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o770); err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o660)
	if err != nil {
		return nil, fmt.Errorf("opening the file of a lifetime: %w", err)
	}
	return f, nil
}
