// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// tether makes a folder that has the programs under their names.
// Only Linux can end them with a test binary that is killed.
func tether() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "parley-testcluster-"); err != nil {
		return "", fmt.Errorf("making a folder for the control plane: %w", err)
	}
	for _, name := range programs {
		if err := os.Symlink(filepath.Join(os.Getenv(assetsVariable), name), filepath.Join(dir, name)); err != nil {
			return dir, fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return dir, nil
}
