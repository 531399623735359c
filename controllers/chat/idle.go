// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
)

// idleChats knows the chats at rest of each class, as the cache shows them. Whether a class keeps enough of them is
// asked in each pass of one, and the cache would unpack all of them for that.
type idleChats struct {
	mu      sync.Mutex
	byClass map[types.NamespacedName]map[string]plan.Idle
}

// put notes how the cache shows a chat; nil: it is gone. It returns the class that may now have too many chats at rest;
// empty if none has.
func (c *idleChats) put(before, after *v1beta1.Chat) types.NamespacedName {
	old, _, was := idleOf(before)
	key, idle, is := idleOf(after)
	c.mu.Lock()
	defer c.mu.Unlock()
	if is && c.byClass[key][idle.Name] == idle {
		return types.NamespacedName{}
	}
	if was {
		if delete(c.byClass[old], before.Name); len(c.byClass[old]) == 0 {
			delete(c.byClass, old)
		}
	}
	if !is {
		return types.NamespacedName{}
	}
	if c.byClass == nil {
		c.byClass = map[types.NamespacedName]map[string]plan.Idle{}
	}
	if c.byClass[key] == nil {
		c.byClass[key] = map[string]plan.Idle{}
	}
	c.byClass[key][idle.Name] = idle
	return key
}

// idleOf is a chat at rest that its class counts.
func idleOf(chat *v1beta1.Chat) (class types.NamespacedName, idle plan.Idle, ok bool) {
	if chat == nil || chat.Status.IdleSince == nil || chat.Status.ChatClass == nil || chat.Spec.ParentRef != nil ||
		chat.Spec.Suspend || !chat.DeletionTimestamp.IsZero() || chat.Status.History.Version == 0 {
		return class, idle, false // Of chats without messages, anyone could create enough to displace the others.
	}
	// A copy of the name does not keep the whole object in memory.
	return types.NamespacedName{Namespace: chat.Namespace, Name: chat.Status.ChatClass.Name},
		plan.Idle{Name: strings.Clone(chat.Name), Since: chat.Status.IdleSince.Time,
			Failed: chat.Status.Phase == v1beta1.ChatError}, true
}

// surplus are the chats at rest that the class does not keep.
func (c *idleChats) surplus(class *v1beta1.ChatClass) []plan.Idle {
	if class.Spec.Keep == nil {
		return nil
	}
	c.mu.Lock()
	chats := c.byClass[client.ObjectKeyFromObject(class)]
	idle := make([]plan.Idle, 0, len(chats))
	for _, chat := range chats {
		idle = append(idle, chat)
	}
	c.mu.Unlock()
	return plan.Surplus(class.Spec.Keep, idle)
}

func (c *idleChats) isSurplus(class *v1beta1.ChatClass, name string) bool {
	return slices.ContainsFunc(c.surplus(class), func(chat plan.Idle) bool { return chat.Name == name })
}

// restHandler notes which chats rest, and enqueues those that their class does not keep once another one rests.
func (e *enqueuer) restHandler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	note := func(ctx context.Context, before, after client.Object, to queue) {
		was, _ := before.(*v1beta1.Chat)
		is, _ := after.(*v1beta1.Chat)
		key := e.memory.idle.put(was, is)
		var class v1beta1.ChatClass
		if key.Name == "" || e.cache.Get(ctx, key, &class) != nil {
			return // A class that comes enqueues its chats.
		}
		for _, chat := range e.memory.idle.surplus(&class) {
			to.Add(request(key.Namespace, chat.Name))
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, created event.CreateEvent, to queue) {
			if is, ok := created.Object.(*v1beta1.Chat); ok && created.IsInInitialList {
				e.memory.idle.put(nil, is) // Its class enqueues it, once for all.
				return
			}
			note(ctx, nil, created.Object, to)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, to queue) { note(ctx, e.ObjectOld, e.ObjectNew, to) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, to queue) { note(ctx, e.Object, nil, to) },
	}
}
