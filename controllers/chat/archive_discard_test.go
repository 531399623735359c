// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/check"
)

// brokenStore is a store in a folder that can be written to, except for its index.
type brokenStore struct {
	t   *testing.T
	dir string
	*archive.Store
}

func newBrokenStore(t *testing.T) *brokenStore {
	t.Helper()
	b := &brokenStore{t: t, dir: t.TempDir()}
	bucket, err := fileblob.OpenBucket(b.dir, &fileblob.Options{NoTempDir: true})
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, bucket.Close()) })
	b.Store = archive.New(bucket, func() time.Time { return now })
	check.OK(t, os.WriteFile(filepath.Join(b.dir, "index"), nil, 0o600))
	return b
}

func (b *brokenStore) repair() {
	b.t.Helper()
	check.OK(b.t, os.Remove(filepath.Join(b.dir, "index")))
}

// hasContent reports whether the store has the list of the chat.
func (b *brokenStore) hasContent() bool {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.dir, "chats", "ns", "c", "*"))
	check.OK(b.t, err)
	return len(found) > 0
}

// failing is a world whose chat could not be archived, although the store has its content, and says so.
func failing(t *testing.T) (*world, *brokenStore) {
	t.Helper()
	store := newBrokenStore(t)
	w := archiving(t, store.Store)
	w.mustReconcile()
	if w.mustReconcile(); !store.hasContent() || w.chat().Status.Wait == nil {
		t.Fatalf("the store has content: %t; the chat waits for %+v", store.hasContent(), w.chat().Status.Wait)
	}
	return w, store
}

func keepsForGood(c *v1beta1.Chat) { c.Spec.Retention = nil }

func TestFailedArchiveIsRemovedWhenTheChatLives(t *testing.T) {
	for name, restart := range map[string]bool{"the same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			w, store := failing(t)
			store.repair()
			if restart {
				w.later(2 * time.Minute)
			}
			w.change(keepsForGood)
			if w.mustReconcile(); store.hasContent() || w.chat().Status.Wait != nil {
				t.Errorf("the store has content: %t; the chat waits for %+v", store.hasContent(), w.chat().Status.Wait)
			}
		})
	}
}

func TestRemovalOfAFailedArchiveIsRetried(t *testing.T) {
	w, store := failing(t)
	w.later(2 * time.Minute)
	w.change(keepsForGood)
	if result := w.mustReconcile(); !store.hasContent() || result.RequeueAfter != archiveRetry {
		t.Errorf("the store has content: %t; the next try is in %v", store.hasContent(), result.RequeueAfter)
	}
	store.repair()
	w.archiver.now = func() time.Time { return now.Add(4 * time.Minute) }
	if w.mustReconcile(); store.hasContent() {
		t.Error("the content is still there")
	}
}

func TestDeletedChatLeavesNoFailedArchive(t *testing.T) {
	w, store := failing(t)
	store.repair()
	check.OK(t, w.Direct.Delete(t.Context(), w.chat()))
	if w.mustReconcile(); store.hasContent() {
		t.Error("the content is still there")
	}
}

func TestArchiveOfAnotherManagerIsNotDiscarded(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { check.OK(t, bucket.Close()) })
	own := archive.New(bucket, func() time.Time { return now.Add(time.Minute) })
	others := archive.New(bucket, func() time.Time { return now.Add(time.Minute + time.Second) })
	w, written := archiving(t, own), false
	w.Fail = func(call string) error {
		if call == "delete chat" && !written { // Another manager archives it, and its deletion is still to come.
			written = true
			chat := w.chat()
			_, err := others.Write(t.Context(), chat, func(yield func(archive.Object, error) bool) { yield(chat, nil) })
			check.OK(t, err)
			w.change(keepsForGood)
		}
		return nil
	}
	w.mustReconcile()
	if text := archived(t, own); !written || !w.isThere() || strings.Contains(text, "ChatMessage") || text == "" {
		t.Errorf("another manager has written: %t, the chat is there: %t, the archive is %q", written, w.isThere(), text)
	}
	w.archiver.now = func() time.Time { return now.Add(time.Hour) }
	if w.mustReconcile(); archived(t, own) != "" {
		t.Error("the archive of a chat that lives on is still there")
	}
}
