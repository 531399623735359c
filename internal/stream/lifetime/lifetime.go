// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifetime tells one program of a pod how long another one of it lives. The other one holds a lock on a file
// that the two share; the kernel releases it, however that program ends.
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

// lookEvery is how often AwaitEnd tries the lock: 50 ms. It waits only while a pod is being removed.
const lookEvery = 50 * time.Millisecond

// Hold locks the file until this process ends, or end is called. It makes the file, and its directory, if need be.
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

// AwaitEnd waits until nobody holds the lock on the file, which need not be there, or ctx is done.
func AwaitEnd(ctx context.Context, path string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	look := time.NewTicker(lookEvery)
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
