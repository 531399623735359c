// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/retry"
)

// Source is where the events of a chat come from.
type Source interface {
	// Follow yields the events until the chat is deleted, ctx is done or an error ends them. It calls lost, between two
	// events, once the server has been out of reach for a while.
	Follow(ctx context.Context, namespace, chat string, fromStart bool, lost func(error)) iter.Seq2[stream.Event, error]
	// Close releases the connection.
	Close()
}

// APIServer yields the events of a chat without the gateway: whole messages only, the same events otherwise.
type APIServer struct{ Client *apiclient.Client }

// Close implements Source.
func (APIServer) Close() {}

var errStopped = errors.New("the consumer stopped")

// Follow implements Source.
func (a APIServer) Follow(ctx context.Context, namespace, chat string, fromStart bool, lost func(error),
) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		w := &watched{key: namespace + "/" + chat, client: a.Client, changed: make(chan struct{}, 1),
			outage: Outage{Report: lost}}
		err := w.watch(ctx, namespace, chat)
		if err == nil {
			follower := follow.Follower{Chats: w, Messages: a, Notes: w, KeepAlive: w.check, KeepAliveEvery: checkEvery,
				Send: func(e stream.Event) error {
					if !yield(e, nil) {
						return errStopped
					}
					return nil
				}}
			err = follower.Run(ctx, follow.Position{Now: !fromStart})
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(stream.Event{}, err)
		}
	}
}

// Get implements follow.Messages.
func (a APIServer) Get(ctx context.Context, chat *v1beta1.Chat, place follow.Place) (*follow.Committed, error) {
	message, err := a.Client.Messages(chat.Namespace).Get(ctx, place.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", place.Name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", place.Name, err)
	}
	return follow.Commit(chat, message, place)
}

// notesPatience is how long to wait for the notes before a conversation is shown without them, as it is for callers
// that may not list messages.
const notesPatience = 2 * time.Second

// checkEvery is how often it is checked whether the chat can be watched.
const checkEvery = 500 * time.Millisecond

// watched holds a chat and its notes in informers. It implements follow.Chats and follow.Notes.
type watched struct {
	chats, notes cache.Store
	key          string
	client       *apiclient.Client
	changed      chan struct{}
	outage       Outage

	mu sync.Mutex
	// failed is how the last request for the chat ended. Informers repeat all requests.
	failed error
}

func (w *watched) watch(ctx context.Context, namespace, chat string) error {
	chats := cache.NewSharedIndexInformer(w.recorded(w.client.Chats(namespace).ListerWatcher("metadata.name="+chat)),
		&v1beta1.Chat{}, 0, cache.Indexers{})
	selector := fmt.Sprintf("spec.chatRef.name=%s,spec.visibility=%s", chat, v1beta1.VisibleToUsers)
	notes := cache.NewSharedIndexInformer(w.client.Messages(namespace).ListerWatcher(selector), &v1beta1.ChatMessage{}, 0,
		cache.Indexers{})
	w.chats, w.notes = chats.GetStore(), notes.GetStore()
	for _, informer := range []cache.SharedIndexInformer{chats, notes} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { w.notify() },
			UpdateFunc: func(any, any) { w.notify() }, DeleteFunc: func(any) { w.notify() }}); err != nil {
			return fmt.Errorf("watching chat %s: %w", chat, err)
		}
		go informer.RunWithContext(ctx)
	}
	if err := w.await(ctx, chats.HasSyncedChecker().Done()); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, notesPatience)
	defer cancel()
	cache.WaitFor(patient, "", notes.HasSyncedChecker())
	return ctx.Err()
}

// await waits until the chat was read.
func (w *watched) await(ctx context.Context, read <-chan struct{}) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-read:
			return nil
		case <-ticker.C:
			if err := w.check(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recorded returns a source of the chat that records how its requests end.
func (w *watched) recorded(source cache.ListerWatcher) cache.ListerWatcher {
	from := cache.ToListerWatcherWithContext(source)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContext(ctx, options)
			w.record(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := from.WatchWithContext(ctx, options)
			w.record(err)
			return events, err
		},
	}
}

func (w *watched) record(failed error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = failed
}

// check reports an outage, and fails if the caller may not watch the chat.
func (w *watched) check() error {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	switch {
	case failed == nil:
		w.outage.over()
	case apierrors.IsForbidden(failed), apierrors.IsUnauthorized(failed):
		return fmt.Errorf("watching chat %s: %w", w.key, failed)
	default:
		w.outage.lost(time.Now(), failed)
	}
	return nil
}

func (w *watched) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Latest implements follow.Chats.
func (w *watched) Latest() *v1beta1.Chat {
	obj, exists, err := w.chats.GetByKey(w.key)
	if err != nil || !exists {
		return nil
	}
	chat, _ := obj.(*v1beta1.Chat)
	return chat
}

// Changed implements follow.Chats.
func (w *watched) Changed() <-chan struct{} { return w.changed }

// Of implements follow.Notes.
func (w *watched) Of(chat *v1beta1.Chat) (refs []follow.NoteRef) {
	for _, obj := range w.notes.List() {
		if msg, ok := obj.(*v1beta1.ChatMessage); ok {
			if note, ok := follow.NoteOf(chat, msg); ok {
				refs = append(refs, note)
			}
		}
	}
	return refs
}

// Read implements follow.Notes.
func (w *watched) Read(ctx context.Context, chat *v1beta1.Chat, note follow.NoteRef) (*v1beta1.ChatMessage, error) {
	msg, err := w.client.Messages(chat.Namespace).Get(ctx, note.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", note.Name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("reading note %s: %w", note.Name, err)
	}
	return msg, nil
}

// Snapshot is a chat at one moment, as the events of its stream, with the notes at their places. It implements
// follow.Chats and follow.Notes.
type Snapshot struct {
	Chat   *v1beta1.Chat
	Events []stream.Event

	notes []v1beta1.ChatMessage
}

const snapshotTries = 3

// Snapshot reads a chat with its newest messages; all for 0. It reads again if the chat changes meanwhile.
func (o Objects) Snapshot(ctx context.Context, name string, last int) (*Snapshot, error) {
	var failed error
	for range snapshotTries {
		chat, err := o.Chat(ctx, name)
		if err != nil {
			return nil, err
		}
		t, err := o.read(ctx, chat, last)
		if err == nil {
			return t, nil
		}
		if failed = err; !errors.Is(err, errChanged) && !errors.Is(err, follow.ErrUnsettled) {
			break
		}
		if err := retry.Sleep(ctx, ReconnectAfter); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("reading the messages of chat %s: %w", name, failed)
}

var errChanged = errors.New("the conversation is changed while it is read, try again")

// read reads the newest messages of a chat as it was read; all for 0.
func (o Objects) read(ctx context.Context, chat *v1beta1.Chat, last int) (*Snapshot, error) {
	notes, err := o.Messages().List(ctx, metav1.ListOptions{
		FieldSelector: fmt.Sprintf("spec.chatRef.name=%s,spec.visibility=%s", chat.Name, v1beta1.VisibleToUsers)})
	if err != nil {
		return nil, err
	}
	source, err := o.messageSource(ctx, chat, last)
	if err != nil {
		return nil, err
	}
	t, messages, expected := &Snapshot{Chat: chat, notes: notes.Items}, int64(0), chat.Status.History.Length
	if last > 0 {
		expected = min(expected, int64(last))
	}
	follower := follow.Follower{Chats: t, Messages: source, Notes: t,
		Send: func(e stream.Event) error {
			if e.Name == stream.EventMessage {
				messages++
			}
			t.Events = append(t.Events, e)
			return nil
		}}
	if err := follower.Once(ctx, int64(last)); err != nil {
		return nil, err
	}
	if messages != expected {
		return nil, errChanged
	}
	return t, nil
}

// messageSource reads messages one by one where that takes fewer requests than a list.
func (o Objects) messageSource(ctx context.Context, chat *v1beta1.Chat, last int) (follow.Messages, error) {
	one, length := APIServer{o.Client}, int(chat.Status.History.Length)
	if last == 0 {
		last = length
	}
	if min(last, length) <= length/MessagePage+1 {
		return one, nil
	}
	l := listedMessages{APIServer: one, byName: map[string]*v1beta1.ChatMessage{}}
	return l, Each(ctx, MessagesOf(chat.Name), o.Messages().List,
		func(m *v1beta1.ChatMessage) { l.byName[m.Name] = m })
}

// listedMessages serves messages from a list, and later ones from the API server. It implements follow.Messages.
type listedMessages struct {
	APIServer

	byName map[string]*v1beta1.ChatMessage
}

// Get implements follow.Messages.
func (l listedMessages) Get(ctx context.Context, chat *v1beta1.Chat, place follow.Place) (*follow.Committed, error) {
	if m := l.byName[place.Name]; m != nil {
		return follow.Commit(chat, m, place)
	}
	return l.APIServer.Get(ctx, chat, place)
}

// Last keeps the last few messages with their notes, and returns how many it drops; none for 0.
func (s *Snapshot) Last(messages int) (dropped int, failed error) {
	first := s.Chat.Status.History.Length - int64(messages)
	if messages == 0 || first <= 0 {
		return 0, nil
	}
	s.Events = slices.DeleteFunc(s.Events, func(e stream.Event) bool {
		u, err := client.Decode(e)
		failed = errors.Join(failed, err)
		switch u := u.(type) {
		case *stream.MessageCommitted:
			return u.Index < first
		case *stream.Note:
			return u.Index < first
		}
		return false
	})
	return int(first), failed
}

// Latest implements follow.Chats.
func (s *Snapshot) Latest() *v1beta1.Chat { return s.Chat }

// Changed implements follow.Chats: it never does.
func (*Snapshot) Changed() <-chan struct{} { return nil }

// Of implements follow.Notes.
func (s *Snapshot) Of(chat *v1beta1.Chat) (refs []follow.NoteRef) {
	for i := range s.notes {
		if note, ok := follow.NoteOf(chat, &s.notes[i]); ok {
			refs = append(refs, note)
		}
	}
	return refs
}

// Read implements follow.Notes.
func (s *Snapshot) Read(_ context.Context, _ *v1beta1.Chat, note follow.NoteRef) (*v1beta1.ChatMessage, error) {
	for i := range s.notes {
		if s.notes[i].UID == note.UID {
			return &s.notes[i], nil
		}
	}
	return nil, follow.ErrMissing
}
