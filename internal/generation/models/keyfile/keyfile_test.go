// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package keyfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"parley.dev/parley/internal/generation/models/keyfile"
	"parley.dev/parley/test/kit/check"
)

// mounted lays files out as a kubelet mounts a Secret: by way of two links, so that all keys change at once.
func mounted(t *testing.T) (dir string) {
	t.Helper()
	pod := t.TempDir()
	dir = filepath.Join(pod, "keys")
	secret := filepath.Join(dir, "openai")
	must(t, os.MkdirAll(filepath.Join(secret, "..2026_01_01"), 0o700))
	must(t, os.WriteFile(filepath.Join(secret, "..2026_01_01", "key"), []byte("sk-1"), 0o600))
	must(t, os.Symlink("..2026_01_01", filepath.Join(secret, "..data")))
	must(t, os.Symlink("..data/key", filepath.Join(secret, "key")))
	must(t, os.WriteFile(filepath.Join(pod, "token"), []byte("the pod's own"), 0o600))
	must(t, os.Symlink("../../token", filepath.Join(secret, "out")))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	check.OK(t, err)
}

func TestKeyIsReadThroughTheKubeletsLinks(t *testing.T) {
	got, err := keyfile.Read(mounted(t), "openai", "key")
	check.Equal(t, "error, result", []any{nil, "sk-1"}, []any{err, string(got)})
}

func TestNothingOutsideOfTheMountedSecretsIsRead(t *testing.T) {
	dir := mounted(t)
	for _, name := range []struct{ secret, key string }{
		{"..", "token"}, {"../../secrets/kubernetes.io/serviceaccount", "token"}, {"openai", "../../token"},
		{"openai/..", "token"},
		{"", "openai"}, {"openai", ""}, {".", "openai"}, {"openai", "."}, {"openai", ".."}, {filepath.Dir(dir), "token"},
		{"openai", "..data/key"},
	} {
		if got, err := keyfile.Read(dir, name.secret, name.key); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q, %q: got %q, %v", name.secret, name.key, got, err)
		}
	}
	if got, err := keyfile.Read(dir, "openai", "out"); err == nil {
		t.Errorf("a link that leads out was followed to %q", got)
	}
	for _, name := range []struct{ secret, key string }{{"other", "key"}, {"openai", "other"}} {
		if _, err := keyfile.Read(dir, name.secret, name.key); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q, %q: %v", name.secret, name.key, err)
		}
	}
}
