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

// forwarder passes events of items to all handlers as events of objects. The handlers of an event share its objects, as
// those of a shared informer do: they must not change them.
func (i *informer) forwarder() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			added := i.unpack(o)
			i.forward(func(h cache.ResourceEventHandler) { h.OnAdd(added, initial) })
		},
		UpdateFunc: func(o, n any) {
			before, after := i.unpack(o), i.unpack(n)
			i.forward(func(h cache.ResourceEventHandler) { h.OnUpdate(before, after) })
		},
		DeleteFunc: func(o any) {
			if last, gone := o.(cache.DeletedFinalStateUnknown); gone {
				last.Obj = i.unpack(last.Obj)
				o = last
			}
			deleted := i.unpack(o)
			i.forward(func(h cache.ResourceEventHandler) { h.OnDelete(deleted) })
		},
	}
}

// forward calls all handlers, one after the other.
func (i *informer) forward(call func(cache.ResourceEventHandler)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.handlers {
		call(r.handler)
	}
}
