// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/netguard/limit"
)

const (
	// cacheMessages and cacheBytes bound what is kept of the newest messages.
	cacheMessages = 1024
	cacheBytes    = 64 << 20
	// maxFetches is how many messages are fetched at a time, so that many followers of long histories do not overload
	// the API server.
	maxFetches = 16
	// fetchTimeout bounds one of them.
	fetchTimeout = 10 * time.Second
	// previewAge is how long the preview of a queued message is kept, so that all followers of a chat cost one fetch.
	previewAge = 5 * time.Second
	// maxPreviews bounds their number.
	maxPreviews = 1024
)

// GetMessage fetches a ChatMessage from the API server.
type GetMessage func(ctx context.Context, namespace, name string) (*v1beta1.ChatMessage, error)

// messages fetches messages, each once for all that follow the chat at the same time. A message of a person can be
// edited, or deleted and created again, so a kept one is used only for the commit that it was kept for. It implements
// follow.Messages and follow.Queue.
type messages struct {
	get      GetMessage
	cached   GetMessage
	fetches  limit.Limiter
	fetching singleflight.Group

	mu       sync.Mutex
	known    *lru.Cache // of *follow.Committed
	bytes    int        // of known
	previews *utilcache.LRUExpireCache
}

// newMessages returns messages that are fetched by get, or by cached where the API server's cache suffices; nil: never.
func newMessages(get, cached GetMessage) *messages {
	m := &messages{get: get, cached: cached, fetches: limit.New(maxFetches),
		previews: utilcache.NewLRUExpireCache(maxPreviews)}
	m.known = lru.NewWithEvictionFunc(cacheMessages, func(_ lru.Key, evicted any) {
		m.bytes -= len(evicted.(*follow.Committed).Data)
	})
	return m
}

// Get implements follow.Messages.
func (m *messages) Get(ctx context.Context, chat *v1beta1.Chat, place follow.Place) (*follow.Committed, error) {
	// Once text was removed from a chat, what was read before counts no more.
	key := fmt.Sprintf("%s/%s/%d/%s", chat.UID, chat.Annotations[v1beta1.AnnotationRedacted], place.Index, place.Name)
	if found := m.lookup(key, place.Version); found != nil {
		return found, nil
	}
	// A fetch that began for an older version of the history may bring what was there before an edit.
	flight := fmt.Sprintf("%s@%d", key, chat.Status.History.Version)
	return limit.Shared(ctx, &m.fetching, flight, fetchTimeout, func(ctx context.Context) (*follow.Committed, error) {
		if found := m.lookup(key, place.Version); found != nil { // Another fetch has ended since.
			return found, nil
		}
		msg, err := m.certain(ctx, chat, place.Name)
		if err != nil {
			return nil, err
		}
		committed, err := follow.Commit(chat, msg, place)
		if err != nil {
			return nil, err
		}
		m.keep(key, committed)
		return committed, nil
	})
}

// certain reads a committed message: from the API server's cache, if that surely has what was committed.
func (m *messages) certain(ctx context.Context, chat *v1beta1.Chat, name string) (*v1beta1.ChatMessage, error) {
	if m.cached != nil && history.MayBeCertain(chat, name) {
		if msg, err := m.fetch(ctx, m.cached, chat.Namespace, name); err == nil && history.Certain(chat, msg) {
			return msg, nil
		}
	}
	return m.fetch(ctx, m.get, chat.Namespace, name)
}

// fetch reads a message, as one of maxFetches at a time.
func (m *messages) fetch(ctx context.Context, get GetMessage, namespace, name string) (*v1beta1.ChatMessage, error) {
	release, err := m.fetches.Acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	msg, err := get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("getting message %s: %w", name, err)
	}
	return msg, nil
}

// lookup finds a kept message: a generated one, which never changes, or one whose commit made that version.
func (m *messages) lookup(key string, version int64) *follow.Committed {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.known.Get(key)
	if !ok {
		return nil
	}
	message := found.(*follow.Committed)
	if message.Base == 0 && message.Version != version {
		return nil
	}
	return message
}

func (m *messages) keep(key string, message *follow.Committed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.known.Get(key); ok {
		if message.Version <= known.(*follow.Committed).Version {
			return
		}
		m.known.Remove(key)
	}
	m.bytes += len(message.Data)
	m.known.Add(key, message)
	for m.bytes > cacheBytes {
		m.known.RemoveOldest()
	}
}

// Look implements follow.Queue.
func (m *messages) Look(ctx context.Context, chat *v1beta1.Chat, name string) (stream.QueuedMessage, error) {
	// What was read for an earlier version of the chat may be from before an edit.
	key := fmt.Sprintf("queue/%s@%s/%s", chat.UID, chat.ResourceVersion, name)
	if seen, ok := m.previews.Get(key); ok {
		return seen.(stream.QueuedMessage), nil
	}
	return limit.Shared(ctx, &m.fetching, key, fetchTimeout, func(ctx context.Context) (stream.QueuedMessage, error) {
		msg, err := m.fetch(ctx, m.get, chat.Namespace, name)
		if err != nil {
			return stream.QueuedMessage{}, err
		}
		seen, err := follow.Queued(chat, msg)
		if err == nil {
			m.previews.Add(key, seen, previewAge)
		}
		return seen, err
	})
}

// noteSelector is the field selector of the messages for people only.
const noteSelector = "spec.visibility=" + string(v1beta1.VisibleToUsers)

// notesByChat is the index of the notes of a chat.
const notesByChat = "chat"

// notes caches which messages for people only exist, without their content. It implements follow.Notes.
type notes struct {
	*informer[*v1beta1.ChatMessage]
	messages *messages
}

// newNotes caches the notes in the namespaces. It calls changed with the key of a chat whose notes may have changed.
func newNotes(from source, namespaces []string, messages *messages, changed func(chat string)) (*notes, error) {
	byChat := func(obj any) ([]string, error) {
		return []string{chatOfNote(objectOf[*v1beta1.ChatMessage](obj))}, nil
	}
	informer, err := newInformer(from, namespaces, &v1beta1.ChatMessage{}, cache.Indexers{notesByChat: byChat},
		withoutContent, func(before, after *v1beta1.ChatMessage) {
			if note := cmp.Or(after, before); note != nil {
				changed(chatOfNote(note))
			}
		})
	return &notes{informer, messages}, err
}

func chatOfNote(note *v1beta1.ChatMessage) string {
	return note.Namespace + "/" + note.Spec.ChatRef.Name
}

// withoutContent keeps the identity and the place of a note.
func withoutContent(note *v1beta1.ChatMessage) *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: note.Namespace, Name: note.Name, UID: note.UID,
			Generation: note.Generation, ResourceVersion: note.ResourceVersion, CreationTimestamp: note.CreationTimestamp,
			DeletionTimestamp: note.DeletionTimestamp},
		Spec: v1beta1.ChatMessageSpec{ChatRef: note.Spec.ChatRef, Visibility: note.Spec.Visibility},
		Status: v1beta1.ChatMessageStatus{State: note.Status.State, ChatUID: note.Status.ChatUID,
			Index: note.Status.Index},
	}
}

// Of implements follow.Notes.
func (n *notes) Of(chat *v1beta1.Chat) (refs []follow.NoteRef) {
	for _, msg := range n.indexed(notesByChat, chat.Namespace+"/"+chat.Name) {
		if note, ok := follow.NoteOf(chat, msg); ok {
			refs = append(refs, note)
		}
	}
	return refs
}

// Read implements follow.Notes. All that follow the chat at the same time cost one fetch.
func (n *notes) Read(ctx context.Context, chat *v1beta1.Chat, note follow.NoteRef) (*v1beta1.ChatMessage, error) {
	// A fetch that began for an earlier generation may bring that.
	key := fmt.Sprintf("note/%s/%s@%d", note.UID, note.Name, note.Generation)
	return limit.Shared(ctx, &n.messages.fetching, key, fetchTimeout,
		func(ctx context.Context) (*v1beta1.ChatMessage, error) {
			return n.messages.fetch(ctx, n.messages.get, chat.Namespace, note.Name)
		})
}
