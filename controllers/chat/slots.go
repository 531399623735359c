// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/capacity"
)

// slots are the places at the gate that chats pass before they generate. It is a source of the controller: no chat is
// reconciled before WaitForSync has told the gate how things stand, and the chats that the gate admits later are
// requeued.
type slots struct {
	gate       *capacity.Gate
	chats      client.Reader
	loadLimits func(context.Context) error
	// elsewhere has the chats that other managers drive; nil: there are none.
	elsewhere ctrlcache.Cache
}

// Start requeues chats that the gate has admitted, until the context is done.
func (s *slots) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go requeueAdmitted(ctx, queue, s.gate.Requeue)
	return nil
}

// requeueAdmitted requeues the chats that a gate returns, until the context is done.
func requeueAdmitted(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
	next func(context.Context) []types.NamespacedName) {
	for ctx.Err() == nil {
		for _, key := range next(ctx) {
			queue.Add(reconcile.Request{NamespacedName: key})
		}
	}
}

// WaitForSync tells the gate what its limits are, who has a slot and who waits. Those who wait come last and together:
// before all that have a slot are known, a slot may only seem free, and one that is free is for who has waited longest.
func (s *slots) WaitForSync(ctx context.Context) error {
	if err := s.loadLimits(ctx); err != nil {
		return err
	}
	waiting, err := s.hold(ctx, s.chats, asSlot)
	if err == nil && s.elsewhere != nil {
		var others []capacity.Chat
		others, err = s.hold(ctx, s.elsewhere, asSlotElsewhere)
		waiting = append(waiting, others...)
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) { // The process ends.
			return nil
		}
		return err
	}
	s.gate.Wait(waiting...)
	return s.followElsewhere(ctx)
}

// hold tells the gate which chats have a slot, and returns those that wait for one.
func (s *slots) hold(ctx context.Context, chats client.Reader, as func(*v1beta1.Chat) capacity.Chat) (
	waiting []capacity.Chat, err error) {
	var list v1beta1.ChatList
	if err := chats.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing chats: %w", err)
	}
	for i := range list.Items {
		switch chat := &list.Items[i]; {
		case chat.Status.Generation != nil:
			s.gate.Hold(as(chat))
		case chat.Status.WaitingSince != nil:
			waiting = append(waiting, as(chat))
		}
	}
	return waiting, nil
}

// String names the source in logs.
func (s *slots) String() string { return "generation slots" }

// enter takes a slot for the chat; if there is none, it says why.
func (s *slots) enter(chat *v1beta1.Chat) *capacity.Held { return s.gate.Enter(asSlot(chat)) }

func asSlot(chat *v1beta1.Chat) capacity.Chat {
	slot := capacity.Chat{Key: keyOf(chat), Sub: chat.Spec.ParentRef != nil}
	if since := chat.Status.WaitingSince; since != nil {
		slot.Since = since.Time
	}
	return slot
}

// settle tells the gate what became of the chat.
func (s *slots) settle(chat *v1beta1.Chat, st *v1beta1.ChatStatus) {
	slot := asSlot(chat)
	if st.WaitingSince != nil {
		slot.Since = st.WaitingSince.Time
	}
	s.tell(slot, st)
}

// tell tells the gate what the status says of a slot.
func (s *slots) tell(slot capacity.Chat, st *v1beta1.ChatStatus) {
	switch {
	case st.Generation != nil:
		s.gate.Hold(slot)
	case st.WaitingSince != nil:
		s.gate.Wait(slot)
	default:
		s.leave(slot.Key)
	}
}

// giveUp is for a reconcile that has failed: a chat that cannot begin keeps no slot from others. It asks again when it
// is tried again; to be told to wait now would call it back at once, for as long as it fails.
func (s *slots) giveUp(chat *v1beta1.Chat) {
	if chat.Status.Generation == nil {
		s.leave(keyOf(chat))
	}
}

// leave is for a chat that neither has a slot nor waits for one.
func (s *slots) leave(key types.NamespacedName) { s.gate.Leave(key) }
