// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// copySelf puts this program where another container finds it, for init containers without a shell. Nobody ever sees a
// part of it there.
func copySelf(destination string) (err error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading the program: %w", err)
	}
	defer func() { _ = self.Close() }() // It was only read.
	copied, err := os.CreateTemp(filepath.Dir(destination), ".workspace-agent-*")
	if err != nil {
		return fmt.Errorf("copying the program: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("copying the program: %w", errors.Join(err, os.Remove(copied.Name())))
		}
	}()
	_, err = io.Copy(copied, self)
	if err == nil {
		err = copied.Chmod(0o755)
	}
	if err == nil {
		err = copied.Sync()
	}
	if err = errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return os.Rename(copied.Name(), destination)
}
