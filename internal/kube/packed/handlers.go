// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

// registration is a handler, which has received the initial list once the informer has synced.
type registration struct {
	cache.DoneChecker

	handler cache.ResourceEventHandler
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return cache.IsDone(r) }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker { return r }

// AddEventHandler implements cache.SharedInformer. The handler receives existing objects before this returns.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	if i.IsStopped() {
		return nil, errors.New("the informer has been stopped")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, one := range i.indexer.List() {
		h.OnAdd(i.unpack(one), true)
	}
	r := &registration{i.HasSyncedChecker(), h}
	i.handlers = append(i.handlers, r)
	return r, nil
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer. There is no such period but that of all handlers.
func (*informer) AddEventHandlerWithResyncPeriod(cache.ResourceEventHandler, time.Duration) (
	cache.ResourceEventHandlerRegistration, error) {
	return nil, errors.ErrUnsupported
}

// AddEventHandlerWithOptions implements cache.SharedInformer, but for a resync period of the handler's own.
func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (
	cache.ResourceEventHandlerRegistration, error) {
	if o.ResyncPeriod != nil {
		return i.AddEventHandlerWithResyncPeriod(h, *o.ResyncPeriod)
	}
	return i.AddEventHandler(h)
}

// RemoveEventHandler implements cache.SharedInformer.
func (i *informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(r *registration) bool {
		return cache.ResourceEventHandlerRegistration(r) == handle
	})
	return nil
}

// forwarder passes events of items to all handlers as events of objects.
func (i *informer) forwarder() cache.ResourceEventHandler {
	forward := func(one func(cache.ResourceEventHandler)) {
		i.mu.Lock()
		defer i.mu.Unlock()
		for _, r := range i.handlers {
			one(r.handler)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			forward(func(h cache.ResourceEventHandler) { h.OnAdd(i.unpack(o), initial) })
		},
		UpdateFunc: func(before, after any) {
			forward(func(h cache.ResourceEventHandler) { h.OnUpdate(i.unpack(before), i.unpack(after)) })
		},
		DeleteFunc: func(o any) {
			last, gone := o.(cache.DeletedFinalStateUnknown)
			forward(func(h cache.ResourceEventHandler) {
				if !gone {
					h.OnDelete(i.unpack(o))
					return
				}
				h.OnDelete(cache.DeletedFinalStateUnknown{Key: last.Key, Obj: i.unpack(last.Obj)})
			})
		},
	}
}
