// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
)

// slots reports whether the gate that chats pass before they generate knows how things stand.
type slots struct {
	mu     sync.Mutex
	primed bool
}

// primeGate tells the gate once what its limits are, who has a slot and who waits. Those who wait come last: before all
// that have a slot are known, a slot may only seem free.
func (r *Reconciler) primeGate(ctx context.Context) error {
	r.slots.mu.Lock()
	defer r.slots.mu.Unlock()
	if r.slots.primed {
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
				r.settleSlot(chat, &chat.Status)
			}
		}
	}
	r.slots.primed = true
	return nil
}

func asSlot(chat *v1alpha1.Chat) capacity.Chat {
	slot := capacity.Chat{Key: keyOf(chat), Sub: chat.Spec.ParentRef != nil}
	if since := chat.Status.WaitingSince; since != nil {
		slot.Since = since.Time
	}
	return slot
}

// settleSlot tells the gate what became of the chat.
func (r *Reconciler) settleSlot(chat *v1alpha1.Chat, st *v1alpha1.ChatStatus) {
	slot := asSlot(chat)
	switch {
	case st.Generation != nil:
		r.Gate.Hold(slot)
	case st.WaitingSince != nil:
		slot.Since = st.WaitingSince.Time
		r.Gate.Wait(slot)
	default:
		r.Gate.Leave(slot.Key)
	}
}

// giveSlotUp is for a pass that has failed: a chat that cannot begin keeps no slot from others. It asks again when it
// is tried again; to be told to wait now would call it back at once, for as long as it fails.
func (r *Reconciler) giveSlotUp(chat *v1alpha1.Chat) {
	if chat.Status.Generation == nil {
		r.Gate.Leave(keyOf(chat))
	}
}
