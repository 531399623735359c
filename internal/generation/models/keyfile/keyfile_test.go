// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package keyfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"parley.dev/parley/internal/generation/models/keyfile"
	"parley.dev/parley/test/kit/check"
)

// mounted lays files out as a kubelet mounts a Secret: by way of two links, so that all keys change at once.
func mounted(t *testing.T) (dir string) {
	t.Helper()
	pod := t.TempDir()
	dir = filepath.Join(pod, "keys")
	secret := filepath.Join(dir, "openai")
	check.OK(t, os.MkdirAll(filepath.Join(secret, "..2026_01_01"), 0o700))
	check.OK(t, os.WriteFile(filepath.Join(secret, "..2026_01_01", "key"), []byte("sk-1"), 0o600))
	check.OK(t, os.Symlink("..2026_01_01", filepath.Join(secret, "..data")))
	check.OK(t, os.Symlink("..data/key", filepath.Join(secret, "key")))
	check.OK(t, os.WriteFile(filepath.Join(pod, "token"), []byte("the pod's own"), 0o600))
	check.OK(t, os.Symlink("../../token", filepath.Join(secret, "out")))
	return dir
}

func TestKeyIsReadThroughTheKubeletsLinks(t *testing.T) {
	got, err := keyfile.Read(mounted(t), "openai", "key")
	check.Equal(t, "error, result", []any{nil, "sk-1"}, []any{err, string(got)})
}

func TestNothingOutsideOfTheMountedSecretsIsRead(t *testing.T) {
	dir := mounted(t)
	for name, want := range map[[2]string]error{
		{"..", "token"}: fs.ErrInvalid, {"../../secrets/kubernetes.io/serviceaccount", "token"}: fs.ErrInvalid,
		{"openai", "../../token"}: fs.ErrInvalid, {"openai/..", "token"}: fs.ErrInvalid, {"", "openai"}: fs.ErrInvalid,
		{"openai", ""}: fs.ErrInvalid, {".", "openai"}: fs.ErrInvalid, {"openai", "."}: fs.ErrInvalid,
		{"openai", ".."}: fs.ErrInvalid, {filepath.Dir(dir), "token"}: fs.ErrInvalid, {"openai", "..data/key"}: fs.ErrInvalid,
		{"openai", "out"}: cmpopts.AnyError, {"other", "key"}: fs.ErrNotExist, {"openai", "other"}: fs.ErrNotExist,
	} {
		_, err := keyfile.Read(dir, name[0], name[1])
		check.Equal(t, name, want, err, cmpopts.EquateErrors())
	}
}
