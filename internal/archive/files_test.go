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
	for f, err := range s.Files().List(t.Context(), namespace, uid) {
		check.OK(t, err)
		all = append(all, f.UID+"/"+f.SHA256)
	}
	return all
}

func TestFileIsWrittenReadListedAndDeleted(t *testing.T) {
	s, ctx := folder(t), t.Context()
	stored := storedFile("content")
	for range 2 { // It can be repeated.
		check.OK(t, s.Files().Write(ctx, "ns", "u1", stored, strings.NewReader("content")))
	}
	check.OK(t, s.Files().Write(ctx, "ns", "u2", stored, strings.NewReader("content")))
	check.OK(t, s.Files().Write(ctx, "ns-2", "u3", stored, strings.NewReader("content")))
	from, err := s.Files().Open(ctx, "ns", "u1", stored.SHA256)
	check.OK(t, err)
	raw, err := io.ReadAll(from)
	check.OK(t, errors.Join(err, from.Close()))
	check.Equal(t, "content", "content", string(raw))
	check.Equal(t, "files of a chat", []string{"u1/" + stored.SHA256}, digests(t, s, "ns", "u1"))
	check.Equal(t, "files", []string{"u1/" + stored.SHA256, "u2/" + stored.SHA256}, digests(t, s, "ns", ""))
	namespaces, err := s.Files().Namespaces(ctx)
	check.OK(t, err)
	slices.Sort(namespaces)
	check.Equal(t, "namespaces", []string{"ns", "ns-2"}, namespaces)
	check.OK(t, s.Files().Delete(ctx, "ns", "u1", stored.SHA256, time.Now().Add(-time.Hour)))
	if len(digests(t, s, "ns", "u1")) != 1 {
		t.Error("a file that was uploaded meanwhile is gone")
	}
	check.OK(t, s.Files().DeleteAll(ctx, "ns", "u1"))
	check.OK(t, s.Files().Delete(ctx, "ns", "u1", stored.SHA256, time.Now()))
	check.Equal(t, "files", []string{"u2/" + stored.SHA256}, digests(t, s, "ns", ""))
	if _, err := s.Files().Open(ctx, "ns", "u1", stored.SHA256); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("opening fails with %v", err)
	}
}

func TestFileOfOtherContentIsNotStored(t *testing.T) {
	s := folder(t)
	for name, content := range map[string]string{"other": "CONTENT", "shorter": "conten", "longer": "contents"} {
		err := s.Files().Write(t.Context(), "ns", "u1", storedFile("content"), strings.NewReader(content))
		if !errors.Is(err, archive.ErrNotAsNamed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	broken := io.MultiReader(strings.NewReader("cont"), errReader{})
	if err := s.Files().Write(t.Context(), "ns", "u1", storedFile("content"), broken); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	check.Equal(t, "files", nil, digests(t, s, "ns", ""))
}

func TestFilesAreArchivedAndDeletedWithArchive(t *testing.T) {
	b, ctx := newBucket(t), t.Context()
	c, stored := chat("c", "u1", day), storedFile("content")
	check.OK(t, b.Files().Write(ctx, "ns", "u1", stored, strings.NewReader("content")))
	e := b.write(c)
	check.OK(t, b.Files().DeleteAll(ctx, "ns", "u1")) // As when the chat is deleted.
	from, err := b.Files().OpenArchived(ctx, "ns", "c", "u1", stored.SHA256)
	check.OK(t, err)
	raw, err := io.ReadAll(from)
	check.OK(t, errors.Join(err, from.Close()))
	check.Equal(t, "content", "content", string(raw))
	check.Equal(t, "archives", 1, len(b.read(e))/3)
	check.OK(t, b.Delete(ctx, "ns", "c", "u1"))
	check.Equal(t, "keys", nil, b.keys())
}

func TestFileOfMessageSentDuringArchivingIsArchived(t *testing.T) {
	b, ctx := newBucket(t), t.Context()
	c, stored := chat("c", "u1", day), storedFile("content")
	_, err := b.Write(ctx, c, func(yield func(archive.Object, error) bool) {
		yield(c, nil) // The messages of a chat follow it, each after the upload of its files.
		check.OK(t, b.Files().Write(ctx, "ns", "u1", stored, strings.NewReader("content")))
	})
	check.OK(t, err)
	from, err := b.Files().OpenArchived(ctx, "ns", "c", "u1", stored.SHA256)
	check.OK(t, err)
	check.OK(t, from.Close())
}

func TestDamagedFileIsNotArchived(t *testing.T) {
	b, c := newBucket(t), chat("c", "u1", day)
	key := "files/ns/u1/" + storedFile("content").SHA256
	check.OK(t, b.blob.WriteAll(t.Context(), key, []byte("CONTENT"), nil))
	if _, err := b.Write(t.Context(), c, objects(c)); !errors.Is(err, archive.ErrNotAsNamed) {
		t.Errorf("got %v", err)
	}
	if err := b.Delete(t.Context(), "ns", "c", "u1"); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	check.Equal(t, "keys", []string{key}, b.keys())
}

var errBroken = errors.New("broken")

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }
