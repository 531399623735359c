// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/kube/apiclient"
)

// Source is where the events of a chat come from.
type Source interface {
	// Follow calls each for every event, until each says that it has had enough or ctx is done; connected is called once
	// the first events are there.
	Follow(ctx context.Context, namespace, chat string, fromStart bool, connected func(),
		each func(stream.Event) (done bool, err error)) error
	// OnLoss has somebody told, between two events, when there are none because nothing is reached.
	OnLoss(tell func(error))
	// Close ends what Follow needs.
	Close()
}

// APIServer tells the story of a chat without its gateway: whole messages only, the same events otherwise.
type APIServer struct{ Client *apiclient.Client }

// Close implements Source.
func (APIServer) Close() {}

// OnLoss implements Source: without a gateway nothing is told of the watches.
func (APIServer) OnLoss(func(error)) {}

var errEnough = errors.New("had enough")

// Follow implements Source.
func (a APIServer) Follow(ctx context.Context, namespace, chat string, fromStart bool, connected func(),
	each func(stream.Event) (bool, error)) error {
	w := &watched{key: namespace + "/" + chat, client: a.Client, changed: make(chan struct{}, 1)}
	if err := w.watch(ctx, namespace, chat); err != nil {
		return err
	}
	follower := follow.Follower{Chats: w, Messages: a, Notes: w, Send: func(e stream.Event) error {
		if connected != nil {
			connected()
		}
		done, err := each(e)
		if err == nil && done {
			return errEnough
		}
		return err
	}}
	if err := follower.Run(ctx, follow.Position{Now: !fromStart}); !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// Get implements follow.Messages.
func (a APIServer) Get(ctx context.Context, chat *v1alpha1.Chat, place follow.Place) (*follow.Committed, error) {
	message, err := a.Client.Messages(chat.Namespace).Get(ctx, place.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", place.Name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", place.Name, err)
	}
	return follow.Commit(chat, message, place)
}

// notesPatience is how long a conversation is shown later for the sake of its notes: 2 s. Who may not list messages
// sees it without them.
const notesPatience = 2 * time.Second

// watched is a chat with its notes, which are messages for people alone, as informers see them. It implements
// follow.Chats and follow.Notes.
type watched struct {
	chats, notes cache.Store
	key          string
	client       *apiclient.Client
	changed      chan struct{}
}

// watch follows the chat until ctx is done.
func (w *watched) watch(ctx context.Context, namespace, chat string) error {
	chats := cache.NewSharedIndexInformer(w.client.Chats(namespace).ListerWatcher("metadata.name="+chat),
		&v1alpha1.Chat{}, 0, cache.Indexers{})
	selector := fmt.Sprintf("spec.chatRef.name=%s,spec.visibility=%s", chat, v1alpha1.VisibleToPeople)
	notes := cache.NewSharedIndexInformer(w.client.Messages(namespace).ListerWatcher(selector), &v1alpha1.ChatMessage{}, 0,
		cache.Indexers{})
	w.chats, w.notes = chats.GetStore(), notes.GetStore()
	for _, informer := range []cache.SharedIndexInformer{chats, notes} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { w.notify() },
			UpdateFunc: func(any, any) { w.notify() }, DeleteFunc: func(any) { w.notify() }}); err != nil {
			return fmt.Errorf("watching chat %s: %w", chat, err)
		}
		go informer.RunWithContext(ctx)
	}
	cache.WaitFor(ctx, "", chats.HasSyncedChecker())
	patient, cancel := context.WithTimeout(ctx, notesPatience)
	defer cancel()
	cache.WaitFor(patient, "", notes.HasSyncedChecker())
	return ctx.Err()
}

// notify says that there may be something new.
func (w *watched) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Latest implements follow.Chats.
func (w *watched) Latest() *v1alpha1.Chat {
	obj, exists, err := w.chats.GetByKey(w.key)
	if err != nil || !exists {
		return nil
	}
	chat, _ := obj.(*v1alpha1.Chat)
	return chat
}

// Changed implements follow.Chats.
func (w *watched) Changed() <-chan struct{} { return w.changed }

// Of implements follow.Notes.
func (w *watched) Of(chat *v1alpha1.Chat) (refs []follow.NoteRef) {
	for _, obj := range w.notes.List() {
		if msg, ok := obj.(*v1alpha1.ChatMessage); ok {
			if note, ok := follow.NoteOf(chat, msg); ok {
				refs = append(refs, note)
			}
		}
	}
	return refs
}

// Read implements follow.Notes.
func (w *watched) Read(ctx context.Context, chat *v1alpha1.Chat, note follow.NoteRef) (*v1alpha1.ChatMessage, error) {
	msg, err := w.client.Messages(chat.Namespace).Get(ctx, note.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", note.Name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("reading note %s: %w", note.Name, err)
	}
	return msg, nil
}
