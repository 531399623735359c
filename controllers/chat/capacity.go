// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
)

// places is the gate that chats pass before they generate, and the bell for those that wait at it.
type places struct {
	mu     sync.Mutex
	primed bool
	bell   chan event.GenericEvent
}

// readCapacity asks for a place if the chat may come to need one in this pass. release gives it back unless it is needed.
func (r *Reconciler) readCapacity(ctx context.Context, s *seen) error {
	if err := r.primeGate(ctx); err != nil {
		return err
	}
	chat, f := s.facts.Chat, &s.facts
	idle := chat.Status.Phase == v1alpha1.ChatWaiting || chat.Status.Phase == v1alpha1.ChatError || chat.Status.Phase == ""
	if idle && len(f.Open) == 0 && len(f.Queued) == 0 && f.Edited == nil && f.Truncated == nil {
		return nil
	}
	f.NoCapacity = !r.Gate.Enter(asPlace(chat))
	return nil
}

// primeGate tells the gate once who has a place and who waits.
func (r *Reconciler) primeGate(ctx context.Context) error {
	r.places.mu.Lock()
	defer r.places.mu.Unlock()
	if r.places.primed {
		return nil
	}
	var chats v1alpha1.ChatList
	if err := r.Client.List(ctx, &chats, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing chats: %w", err)
	}
	for i := range chats.Items {
		r.settlePlace(&chats.Items[i], &chats.Items[i].Status)
	}
	r.places.primed = true
	return nil
}

func asPlace(chat *v1alpha1.Chat) capacity.Chat {
	place := capacity.Chat{Key: keyOf(chat), Sub: chat.Spec.ParentRef != nil}
	if since := chat.Status.WaitingSince; since != nil {
		place.Since = since.Time
	}
	return place
}

func (r *Reconciler) settlePlace(chat *v1alpha1.Chat, st *v1alpha1.ChatStatus) {
	place := asPlace(chat)
	switch {
	case st.Generation != nil:
		r.Gate.Hold(place)
	case st.WaitingSince != nil:
		place.Since = st.WaitingSince.Time
		r.Gate.Wait(place)
	default:
		r.Gate.Leave(place.Key)
	}
}

// wakeNext wakes the chats that have a place now.
func (r *Reconciler) wakeNext(ctx context.Context) {
	for _, key := range r.Gate.Next() {
		chat := &v1alpha1.Chat{}
		chat.Namespace, chat.Name = key.Namespace, key.Name
		select {
		case r.places.bell <- event.GenericEvent{Object: chat}:
		case <-ctx.Done():
			return
		}
	}
}

// leave gives the place of a chat back that is gone.
func (r *Reconciler) leave(ctx context.Context, key types.NamespacedName) {
	r.Gate.Leave(key)
	r.wakeNext(ctx)
}
