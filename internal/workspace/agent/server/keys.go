// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
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

// keysReread is the least time between two looks at the file: a token with an invented key id must not cost more.
const keysReread = 10 * time.Second

// KeyFile implements satoken.KeySource with a JSON Web Key Set in a file, such as a key of a ConfigMap that is mounted.
// A new set is found within ten seconds; of a file that is gone or broken the last good set counts on. It is safe for
// concurrent use.
type KeyFile struct {
	// Path of the file. It may be a link, and lead elsewhere the next time.
	Path string
	// Now returns the current time.
	Now func() time.Time
	// Log, default slog.Default.
	Log *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	content []byte
	keys    jose.JSONWebKeySet
}

// Key implements satoken.KeySource.
func (k *KeyFile) Key(_ context.Context, id string) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.Now(); k.looked.IsZero() || now.Sub(k.looked).Abs() >= keysReread {
		k.looked = now
		if err := k.read(); err != nil {
			k.log().Warn("The keys of the cluster's issuer cannot be read", "error", err)
		}
	}
	if len(k.keys.Keys) == 0 {
		return nil, satoken.ErrNoKeys
	}
	return k.keys.Key(id), nil
}

// read takes the file's keys, if it has changed. The caller holds mu.
func (k *KeyFile) read() error {
	file, err := os.Open(k.Path)
	if err != nil {
		return fmt.Errorf("opening the file: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	content, err := io.ReadAll(io.LimitReader(file, satoken.MaxKeysBytes+1))
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	if bytes.Equal(content, k.content) {
		return nil
	}
	keys, err := satoken.PublicKeys(content)
	if err != nil {
		return err
	}
	k.content, k.keys = content, keys
	return nil
}

func (k *KeyFile) log() *slog.Logger {
	if k.Log == nil {
		return slog.Default()
	}
	return k.Log
}
