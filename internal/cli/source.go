// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/kube/apiclient"
)

// source is where the events of a chat come from. follow calls each for every event, until each says that it has had
// enough or ctx is done; connected is called once the first events are there.
type source interface {
	follow(ctx context.Context, namespace, chat string, fromStart bool, connected func(),
		each func(stream.Event) (done bool, err error)) error
	// onLoss has somebody told, between two events, when there are none because nothing is reached.
	onLoss(tell func(error))
	close()
}

// source finds the gateway, or does without and says so.
func (s *session) source(ctx context.Context) (source, error) {
	g, err := s.gateway.dial(ctx)
	if errors.Is(err, errNoToken) {
		fmt.Fprintf(s.options.ErrOut,
			"%v, so replies are shown when they are whole. To watch them come, use a kubeconfig with a token, "+
				"or name a service account that may get chats/stream with --service-account.\n", err)
		return apiServer{s.objects.client}, nil
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// apiServer tells the story of a chat without its gateway: whole messages only, the same events otherwise.
type apiServer struct{ client *apiclient.Client }

func (a apiServer) close() {}

// onLoss implements source: without a gateway nothing is told of the watches.
func (a apiServer) onLoss(func(error)) {}

var errEnough = errors.New("had enough")

func (a apiServer) follow(ctx context.Context, namespace, chat string, fromStart bool, connected func(),
	each func(stream.Event) (bool, error)) error {
	chats, err := a.watch(ctx, namespace, chat)
	if err != nil {
		return err
	}
	notes, err := a.watchNotes(ctx, namespace, chat, chats.notify)
	if err != nil {
		return err
	}
	follower := follow.Follower{Chats: chats, Messages: a, Notes: notes, Send: func(e stream.Event) error {
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
func (a apiServer) Get(ctx context.Context, chat *v1alpha1.Chat, place follow.Place) (*follow.Committed, error) {
	message, err := a.client.Messages(chat.Namespace).Get(ctx, place.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", place.Name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", place.Name, err)
	}
	return follow.Commit(chat, message, place.Index)
}

// watched is one chat, as an informer sees it. It implements follow.Chats.
type watched struct {
	store   cache.Store
	key     string
	changed chan struct{}
}

// watch follows one chat until ctx is done.
func (a apiServer) watch(ctx context.Context, namespace, chat string) (*watched, error) {
	informer := cache.NewSharedIndexInformer(a.client.Chats(namespace).ListerWatcher("metadata.name="+chat),
		&v1alpha1.Chat{}, 0, cache.Indexers{})
	w := &watched{store: informer.GetStore(), key: namespace + "/" + chat, changed: make(chan struct{}, 1)}
	if _, err := informer.AddEventHandler(calling(w.notify)); err != nil {
		return nil, fmt.Errorf("watching chat %s: %w", chat, err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return nil, ctx.Err()
	}
	return w, nil
}

// calling tells of every change.
func calling(changed func()) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	}
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
	obj, exists, err := w.store.GetByKey(w.key)
	if err != nil || !exists {
		return nil
	}
	chat, _ := obj.(*v1alpha1.Chat)
	return chat
}

// Changed implements follow.Chats.
func (w *watched) Changed() <-chan struct{} { return w.changed }
