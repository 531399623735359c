// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

// observer watches the chats and messages of all runs, for the tests' own use. It tells when a namespace changes and
// keeps the course of each chat.
type observer struct {
	cache cache.Cache

	mu      sync.Mutex
	changed map[string]chan struct{}
	courses map[string][]moment
}

// moment is what a chat's status said at one time.
type moment struct {
	chat    types.UID
	version int64
	head    string
	length  int64
	attempt int32
}

// observe starts the observer. stop ends it.
func observe(parent context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(parent)
	watched = &observer{changed: map[string]chan struct{}{}, courses: map[string][]moment{}}
	watched.cache, err = cache.New(cluster.Config, cache.Options{Scheme: cluster.Client.Scheme(), Mapper: mapper})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("creating the observer's cache: %w", err)
	}
	for _, kind := range []client.Object{&v1beta1.Chat{}, &v1beta1.ChatMessage{}} {
		informer, err := watched.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(watched.handler())
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("observing %T: %w", kind, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- watched.cache.Start(ctx) }()
	stop = func() { cancel(); <-ended }
	if !watched.cache.WaitForCacheSync(ctx) {
		stop()
		return nil, fmt.Errorf("the observer's cache did not fill")
	}
	return stop, nil
}

func (o *observer) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    o.note,
		UpdateFunc: func(_, now any) { o.note(now) },
		DeleteFunc: func(last any) {
			if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}
			o.note(last)
		},
	}
}

// note records the moment and wakes who waits for a change of the namespace.
func (o *observer) note(object any) {
	at, ok := object.(client.Object)
	if !ok {
		return
	}
	ns := at.GetNamespace()
	o.mu.Lock()
	defer o.mu.Unlock()
	if chat, ok := object.(*v1beta1.Chat); ok {
		o.courses[ns] = append(o.courses[ns], momentOf(chat))
	}
	if waiting := o.changed[ns]; waiting != nil {
		close(waiting)
		delete(o.changed, ns)
	}
}

func momentOf(chat *v1beta1.Chat) moment {
	h := chat.Status.History
	m := moment{chat: chat.UID, version: h.Version, head: h.Head, length: h.Length}
	if g := chat.Status.Generation; g != nil {
		m.attempt = g.Attempt
	}
	return m
}

// change is closed with the next change in the namespace.
func (o *observer) change(ns string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed[ns] == nil {
		o.changed[ns] = make(chan struct{})
	}
	return o.changed[ns]
}

// course is what the namespace's chats have gone through so far.
func (o *observer) course(ns string) []moment {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]moment(nil), o.courses[ns]...)
}
