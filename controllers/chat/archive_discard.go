// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
)

// discardTimeout bounds the time to remove an archive. The next step of the chat waits for it.
const discardTimeout = 10 * time.Second

// errOthers is why an archive stays that this process has not written.
var errOthers = errors.New("another manager has written it, and may be about to delete the chat")

// discard removes the archive of a chat that lives on: what is removed from the chat later must not stay in it. If that
// fails, discardStale tries again.
func (a *archiver) discard(ctx context.Context, chat *v1beta1.Chat) {
	key := client.ObjectKeyFromObject(chat)
	if err := a.remove(ctx, key, a.begun.of(key, chat.UID), archiveTimeout); err != nil {
		log.FromContext(ctx).Error(err, "The archive of a chat that lives on cannot be removed")
	}
}

// discardStale removes what was written of the archive of a chat that continues. Until then the status reports the
// attempt, so that another process tries again after a crash. It returns when to try again; 0: nothing is left.
func (a *archiver) discardStale(ctx context.Context, chat *v1beta1.Chat) (again time.Duration) {
	if a.store == nil {
		return 0
	}
	key := client.ObjectKeyFromObject(chat)
	begun := a.begun.of(key, chat.UID)
	if left := begun.again.Sub(a.now()); left > 0 {
		return left
	}
	ctx, cancel := context.WithTimeout(ctx, discardTimeout)
	defer cancel()
	err := a.stillThere(ctx, chat)
	if apierrors.IsNotFound(err) {
		return 0 // What another manager has archived before it deleted the chat stays.
	}
	if err == nil {
		err = a.remove(ctx, key, begun, archiveTimeout)
	}
	if err == nil {
		return 0
	}
	log.FromContext(ctx).Error(err, "The archive of a chat that lives on cannot be removed; trying again in a minute")
	begun.uid, begun.again = chat.UID, a.now().Add(archiveRetry)
	a.begun.put(key, begun)
	return archiveRetry
}

// discardUnfinished removes what this process has written of the archive of a chat that was deleted meanwhile. A
// complete archive stays.
func (a *archiver) discardUnfinished(ctx context.Context, key types.NamespacedName) error {
	begun := a.begun.get(key)
	if begun.uid == "" || begun.complete {
		a.begun.forget(key)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, discardTimeout)
	defer cancel()
	const always = 1<<63 - 1 // An entry that another manager has written is complete.
	err := a.remove(ctx, key, begun, always)
	if errors.Is(err, errOthers) {
		a.begun.forget(key)
		return nil
	}
	return err
}

// remove removes the archive of a chat, unless another process has written it within that time: a manager that
// archives the same chat relies on it until it has deleted the chat. An archive without an entry is incomplete.
func (a *archiver) remove(ctx context.Context, key types.NamespacedName, begun begunArchive, within time.Duration,
) error {
	entry, err := a.store.Get(ctx, key.Namespace, key.Name, string(begun.uid))
	switch {
	case err == nil && !begun.wrote(entry) && a.now().Sub(entry.ArchivedAt) < within:
		return errOthers
	case err != nil && !errors.Is(err, archive.ErrNotFound):
		return err
	}
	err = a.store.Delete(ctx, key.Namespace, key.Name, string(begun.uid))
	if err != nil && !errors.Is(err, archive.ErrNotFound) {
		return err
	}
	a.begun.forget(key)
	a.failures.forget(key)
	return nil
}

// begunArchives remembers what this process has written of the archives of chats.
type begunArchives struct {
	mu     sync.Mutex
	byChat map[types.NamespacedName]begunArchive
}

// begunArchive is what was written for a chat.
type begunArchive struct {
	uid types.UID
	// entry describes it; nil: it is not known. complete is whether all of it was written.
	entry    *archive.Entry
	complete bool
	// again is when to try again to remove it.
	again time.Time
}

// wrote reports whether the entry is that of what was written.
func (b *begunArchive) wrote(entry *archive.Entry) bool {
	return b.entry != nil && entry.SHA256 == b.entry.SHA256 && entry.ArchivedAt.Equal(b.entry.ArchivedAt)
}

func (b *begunArchives) get(key types.NamespacedName) begunArchive {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byChat[key]
}

// of is what was written for the chat of that UID.
func (b *begunArchives) of(key types.NamespacedName, uid types.UID) begunArchive {
	if begun := b.get(key); begun.uid == uid {
		return begun
	}
	return begunArchive{uid: uid}
}

// has reports whether something was written for the chat.
func (b *begunArchives) has(chat *v1beta1.Chat) bool {
	return b.get(client.ObjectKeyFromObject(chat)).uid == chat.UID
}

func (b *begunArchives) put(key types.NamespacedName, begun begunArchive) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byChat == nil {
		b.byChat = map[types.NamespacedName]begunArchive{}
	}
	b.byChat[key] = begun
}

func (b *begunArchives) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byChat, key)
}
