// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/check"
)

func storedFile(content string) v1beta1.StoredFile {
	sum := sha256.Sum256([]byte(content))
	return v1beta1.StoredFile{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// folder is a store in a folder.
func folder(t *testing.T) *archive.Store {
	t.Helper()
	store, err := archive.Open(t.Context(), "file://"+t.TempDir()+"?no_tmp_dir=true", time.Now)
	check.OK(t, err)
	return store
}

// digests of the files of a chat, or of all chats.
func digests(t *testing.T, s *archive.Store, namespace, uid string) (all []string) {
	t.Helper()
	for f, err := range s.Files(t.Context(), namespace, uid) {
		check.OK(t, err)
		all = append(all, f.UID+"/"+f.SHA256)
	}
	return all
}

func TestFileIsWrittenReadListedAndDeleted(t *testing.T) {
	s, ctx := folder(t), t.Context()
	stored := storedFile("content")
	for range 2 { // It can be repeated.
		check.OK(t, s.WriteFile(ctx, "ns", "u1", stored, strings.NewReader("content")))
	}
	check.OK(t, s.WriteFile(ctx, "ns", "u2", stored, strings.NewReader("content")))
	check.OK(t, s.WriteFile(ctx, "ns-2", "u3", stored, strings.NewReader("content")))
	from, err := s.OpenFile(ctx, "ns", "u1", stored.SHA256)
	check.OK(t, err)
	raw, err := io.ReadAll(from)
	check.OK(t, errors.Join(err, from.Close()))
	check.Equal(t, "content", "content", string(raw))
	check.Equal(t, "files of a chat", []string{"u1/" + stored.SHA256}, digests(t, s, "ns", "u1"))
	check.Equal(t, "files", []string{"u1/" + stored.SHA256, "u2/" + stored.SHA256}, digests(t, s, "ns", ""))
	namespaces, err := s.NamespacesWithFiles(ctx)
	check.OK(t, err)
	slices.Sort(namespaces)
	check.Equal(t, "namespaces", []string{"ns", "ns-2"}, namespaces)
	check.OK(t, s.DeleteFile(ctx, "ns", "u1", stored.SHA256, time.Now().Add(-time.Hour)))
	if len(digests(t, s, "ns", "u1")) != 1 {
		t.Error("a file that was uploaded meanwhile is gone")
	}
	check.OK(t, s.DeleteFiles(ctx, "ns", "u1"))
	check.OK(t, s.DeleteFile(ctx, "ns", "u1", stored.SHA256, time.Now()))
	check.Equal(t, "files", []string{"u2/" + stored.SHA256}, digests(t, s, "ns", ""))
	if _, err := s.OpenFile(ctx, "ns", "u1", stored.SHA256); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("opening fails with %v", err)
	}
}

func TestFileOfOtherContentIsNotStored(t *testing.T) {
	s := folder(t)
	for name, content := range map[string]string{"other": "CONTENT", "shorter": "conten", "longer": "contents"} {
		err := s.WriteFile(t.Context(), "ns", "u1", storedFile("content"), strings.NewReader(content))
		if !errors.Is(err, archive.ErrNotAsNamed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	broken := io.MultiReader(strings.NewReader("cont"), errReader{})
	if err := s.WriteFile(t.Context(), "ns", "u1", storedFile("content"), broken); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	check.Equal(t, "files", nil, digests(t, s, "ns", ""))
}

var errBroken = errors.New("broken")

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }
