// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
)

// slots are the places at the gate that chats pass before they generate. It is a source of the controller: no chat is
// reconciled before WaitForSync has told the gate how things stand, and the chats that the gate admits later are
// requeued.
type slots struct {
	gate       *capacity.Gate
	chats      client.Reader
	loadLimits func(context.Context) error
}

// Start requeues chats that the gate has admitted, until the context is done.
func (s *slots) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for ctx.Err() == nil {
			for _, key := range s.gate.Requeue(ctx) {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
		}
	}()
	return nil
}

// WaitForSync tells the gate what its limits are, who has a slot and who waits. Those who wait come last and together:
// before all that have a slot are known, a slot may only seem free, and one that is free is for who has waited longest.
func (s *slots) WaitForSync(ctx context.Context) error {
	if err := s.loadLimits(ctx); err != nil {
		return err
	}
	var chats v1alpha1.ChatList
	if err := s.chats.List(ctx, &chats, client.UnsafeDisableDeepCopy); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) { // The process ends.
			return nil
		}
		return fmt.Errorf("listing chats: %w", err)
	}
	var waiting []capacity.Chat
	for i := range chats.Items {
		switch chat := &chats.Items[i]; {
		case chat.Status.Generation != nil:
			s.gate.Hold(asSlot(chat))
		case chat.Status.WaitingSince != nil:
			waiting = append(waiting, asSlot(chat))
		}
	}
	s.gate.Wait(waiting...)
	return nil
}

// String names the source in logs.
func (s *slots) String() string { return "generation slots" }

// enter takes a slot for the chat; if there is none, it says why.
func (s *slots) enter(chat *v1alpha1.Chat) *capacity.Held { return s.gate.Enter(asSlot(chat)) }

func asSlot(chat *v1alpha1.Chat) capacity.Chat {
	slot := capacity.Chat{Key: keyOf(chat), Sub: chat.Spec.ParentRef != nil}
	if since := chat.Status.WaitingSince; since != nil {
		slot.Since = since.Time
	}
	return slot
}

// settle tells the gate what became of the chat.
func (s *slots) settle(chat *v1alpha1.Chat, st *v1alpha1.ChatStatus) {
	slot := asSlot(chat)
	switch {
	case st.Generation != nil:
		s.gate.Hold(slot)
	case st.WaitingSince != nil:
		slot.Since = st.WaitingSince.Time
		s.gate.Wait(slot)
	default:
		s.leave(slot.Key)
	}
}

// giveUp is for a reconcile that has failed: a chat that cannot begin keeps no slot from others. It asks again when it
// is tried again; to be told to wait now would call it back at once, for as long as it fails.
func (s *slots) giveUp(chat *v1alpha1.Chat) {
	if chat.Status.Generation == nil {
		s.leave(keyOf(chat))
	}
}

// leave is for a chat that neither has a slot nor waits for one.
func (s *slots) leave(key types.NamespacedName) { s.gate.Leave(key) }
