// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
)

// store holds the newest objects of every chat, as watches tell of them.
type store struct {
	mu    sync.Mutex
	chats map[types.NamespacedName]*objects
	// allowed holds the namespaces with quotas.
	allowed map[string]*allowed
}

// objects are those of one chat. They are shared and must not be changed.
type objects struct {
	chat      *v1beta1.Chat
	messages  map[string]*v1beta1.ChatMessage
	approvals map[string]*v1beta1.ToolApproval
	// seen is the newest version of each object, deleted ones included.
	seen map[string]uint64
	// gaveUp is true once the operator has given an interrupted attempt up by itself, because its pod took too long.
	gaveUp bool
	// changed is closed when the next change comes.
	changed chan struct{}
}

// watch follows all chats, messages and approvals until the context ends.
func watch(ctx context.Context, cfg *rest.Config) (*store, error) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	c, err := cache.New(cfg, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("setting up the watches: %w", err)
	}
	s := &store{chats: map[types.NamespacedName]*objects{}, allowed: map[string]*allowed{}}
	for _, o := range []client.Object{&v1beta1.Chat{}, &v1beta1.ChatMessage{}, &v1beta1.ToolApproval{}} {
		informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("setting up the watch for %T: %w", o, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.put(o, false) },
			UpdateFunc: func(_, o any) { s.put(o, false) },
			DeleteFunc: func(o any) { s.put(o, true) },
		}); err != nil {
			return nil, fmt.Errorf("setting up the watch for %T: %w", o, err)
		}
	}
	go func() { _ = c.Start(ctx) }() // It ends with the context.
	if !c.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the watches did not begin")
	}
	return s, nil
}

func (s *store) put(o any, deleted bool) {
	if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(chatOf(object))
	of.seen[id(object)] = version(object)
	switch object := object.(type) {
	case *v1beta1.Chat:
		of.gaveUp = of.gaveUp || givesUp(of.chat, object)
		s.count(of.chat, object)
		of.chat = object
		if deleted {
			of.chat = nil
		}
	case *v1beta1.ChatMessage:
		set(of.messages, object.Name, object, deleted)
	case *v1beta1.ToolApproval:
		set(of.approvals, object.Name, object, deleted)
	}
	close(of.changed)
	of.changed = make(chan struct{})
}

// givesUp reports whether the operator ends an interruption with this change as late as it does by itself.
func givesUp(before, after *v1beta1.Chat) bool {
	return before != nil && before.UID == after.UID && before.Status.Phase == v1beta1.ChatInterrupting &&
		after.Status.Phase != v1beta1.ChatInterrupting && before.Status.Generation != nil &&
		before.Status.Generation.InterruptedAt != nil &&
		time.Since(before.Status.Generation.InterruptedAt.Time) >= plan.InterruptPatience
}

func set[T any](m map[string]T, name string, value T, deleted bool) {
	if deleted {
		delete(m, name)
		return
	}
	m[name] = value
}

// of is the account of one chat. The caller holds mu.
func (s *store) of(chat types.NamespacedName) *objects {
	if s.chats[chat] == nil {
		s.chats[chat] = &objects{
			messages: map[string]*v1beta1.ChatMessage{}, approvals: map[string]*v1beta1.ToolApproval{},
			seen:    map[string]uint64{},
			changed: make(chan struct{}),
		}
	}
	return s.chats[chat]
}

// get is the account of one chat as it is now.
func (s *store) get(chat types.NamespacedName) objects {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := *s.of(chat)
	o.messages, o.approvals, o.seen = maps.Clone(o.messages), maps.Clone(o.approvals), maps.Clone(o.seen)
	return o
}

// forget drops the account of a chat that is no longer looked at.
func (s *store) forget(chat types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.chats, chat)
}

func chatOf(o client.Object) types.NamespacedName {
	key := client.ObjectKeyFromObject(o)
	switch o := o.(type) {
	case *v1beta1.ChatMessage:
		key.Name = o.Spec.ChatRef.Name
	case *v1beta1.ToolApproval:
		key.Name = o.Spec.ChatRef.Name
	}
	return key
}

func id(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

// version is the resourceVersion as a number: those of custom resources count the writes of one store.
func version(o client.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64) // It is one, or the test waits in vain.
	return n
}
