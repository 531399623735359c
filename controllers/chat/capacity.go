// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
	"parley.dev/parley/internal/chat/plan"
)

// places reports whether the gate that chats pass before they generate knows how things stand.
type places struct {
	mu     sync.Mutex
	primed bool
}

// readCapacity asks for a place if the chat may come to need one in this pass.
func (r *Reconciler) readCapacity(ctx context.Context, s *seen) error {
	if err := r.primeGate(ctx); err != nil {
		return err
	}
	if plan.Rests(&s.facts) {
		return nil
	}
	if held := r.Gate.Enter(asPlace(s.facts.Chat)); held != nil {
		s.facts.NoCapacity = held.String()
	}
	return nil
}

// primeGate tells the gate once what its limits are, who has a place and who waits. Those who wait come last: before all
// that have a place are known, a place may only seem free.
func (r *Reconciler) primeGate(ctx context.Context) error {
	r.places.mu.Lock()
	defer r.places.mu.Unlock()
	if r.places.primed {
		return nil
	}
	if err := r.LoadLimits(ctx); err != nil {
		return err
	}
	var chats v1alpha1.ChatList
	if err := r.Client.List(ctx, &chats, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing chats: %w", err)
	}
	for _, waits := range []bool{false, true} {
		for i := range chats.Items {
			if chat := &chats.Items[i]; waits == (chat.Status.Generation == nil) {
				r.settlePlace(chat, &chat.Status)
			}
		}
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

// settlePlace tells the gate what became of the chat.
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

// givePlaceUp is for a pass that has failed: a chat that cannot begin keeps no place from others. It asks anew when it is
// tried again; to be told to wait now would call it back at once, for as long as it fails.
func (r *Reconciler) givePlaceUp(chat *v1alpha1.Chat) {
	if chat.Status.Generation == nil {
		r.Gate.Leave(keyOf(chat))
	}
}

// called brings chats back when the gate calls them. It ends with the context.
func (r *Reconciler) called(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for ctx.Err() == nil {
			for _, key := range r.Gate.Called(ctx) {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
		}
	}()
	return nil
}
