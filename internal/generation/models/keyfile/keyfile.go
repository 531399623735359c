// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keyfile reads API keys from mounted Secrets. It never reads another file of the pod, such as its token: that
// would go to a provider.
package keyfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Read returns the content of one key of a Secret that is mounted at dir/<secret>. The error wraps fs.ErrNotExist if
// there is no such key, and fs.ErrInvalid if secret or key is no plain name.
func Read(dir, secret, key string) ([]byte, error) {
	if !plain(secret) || !plain(key) {
		return nil, fmt.Errorf("read key %q of Secret %q: %w", key, secret, fs.ErrInvalid)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the API keys: %w", err)
	}
	defer func() { _ = root.Close() }() // It was only read.
	content, err := root.ReadFile(filepath.Join(secret, key))
	if err != nil {
		return nil, fmt.Errorf("read key %q of Secret %q: %w", key, secret, err)
	}
	return content, nil
}

// plain reports whether the name is one element of a path that leads down.
func plain(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsRune(name, filepath.Separator)
}
