// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"parley.dev/parley/internal/kube/satoken"
)

// keysReread is the least time between two reads of the file: a token with an unknown key id must not cost more.
const keysReread = 10 * time.Second

// KeyFile implements satoken.KeySource with a JSON Web Key Set in a file, such as a key of a ConfigMap that is mounted.
// A new set is found within ten seconds. While the file is missing or invalid, the last valid set counts. It is safe
// for concurrent use.
type KeyFile struct {
	// Path of the file.
	Path string
	Now  func() time.Time
	Log  *slog.Logger

	mu   sync.Mutex
	read time.Time
	keys jose.JSONWebKeySet
}

// Key implements satoken.KeySource.
func (k *KeyFile) Key(_ context.Context, id string) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.Now(); now.Sub(k.read).Abs() >= keysReread {
		k.read = now
		if keys, err := readKeys(k.Path); err != nil {
			k.Log.Warn("The keys of the cluster's issuer cannot be read", "error", err)
		} else {
			k.keys = keys
		}
	}
	if len(k.keys.Keys) == 0 {
		return nil, satoken.ErrNoKeys
	}
	return k.keys.Key(id), nil
}

func readKeys(path string) (jose.JSONWebKeySet, error) {
	file, err := os.Open(path)
	if err != nil {
		return jose.JSONWebKeySet{}, fmt.Errorf("opening the file: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	content, err := io.ReadAll(io.LimitReader(file, satoken.MaxKeysBytes+1))
	if err != nil {
		return jose.JSONWebKeySet{}, fmt.Errorf("reading the file: %w", err)
	}
	return satoken.PublicKeys(content)
}
