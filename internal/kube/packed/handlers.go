// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// registration is a handler, and whether it has heard of all that was listed first.
type registration struct {
	handler cache.ResourceEventHandler
	synced  gate
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return r.synced.HasSynced() }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker { return r.synced }

// AddEventHandler implements cache.SharedInformer. What there is already the handler hears before this returns.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.IsStopped() {
		return nil, errors.New("the informer has been stopped")
	}
	r := &registration{handler: h, synced: newGate(i.codec.object.Name() + " handler")}
	if i.HasSynced() {
		for _, one := range i.table.all() {
			h.OnAdd(i.unpack(one), true)
		}
		r.synced.open()
	}
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

// gate is open once something has been listed for the first time.
type gate struct {
	name string
	done chan struct{}
	once *sync.Once
}

func newGate(name string) gate { return gate{name, make(chan struct{}), new(sync.Once)} }

func (g gate) open() { g.once.Do(func() { close(g.done) }) }

// Name implements cache.DoneChecker.
func (g gate) Name() string { return g.name }

// Done implements cache.DoneChecker.
func (g gate) Done() <-chan struct{} { return g.done }

// HasSynced reports whether the gate is open.
func (g gate) HasSynced() bool { return cache.IsDone(g) }
