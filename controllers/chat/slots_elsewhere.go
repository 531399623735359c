// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/capacity"
)

func asSlotElsewhere(chat *v1beta1.Chat) capacity.Chat {
	slot := asSlot(chat)
	slot.Elsewhere = true
	return slot
}

// followElsewhere tells the gate from now on what becomes of the chats that other managers drive.
func (s *slots) followElsewhere(ctx context.Context) error {
	if s.elsewhere == nil {
		return nil
	}
	informer, err := s.elsewhere.GetInformer(ctx, &v1beta1.Chat{})
	if err == nil {
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    s.shownElsewhere,
			UpdateFunc: func(_, after any) { s.shownElsewhere(after) },
			DeleteFunc: s.goneElsewhere,
		})
	}
	if err != nil {
		return fmt.Errorf("following the chats of other shards: %w", err)
	}
	return nil
}

func (s *slots) shownElsewhere(o any) {
	if chat, ok := o.(*v1beta1.Chat); ok {
		s.tell(asSlotElsewhere(chat), &chat.Status)
	}
}

// goneElsewhere is for a chat that has been deleted, or that is at work no more.
func (s *slots) goneElsewhere(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if chat, ok := o.(*v1beta1.Chat); ok {
		s.leave(keyOf(chat))
	}
}
