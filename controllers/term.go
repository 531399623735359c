// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// runTerm sets the controllers up, with metrics of their own, and runs them until the context is done. Then only the
// manager's caches are left.
func runTerm(ctx context.Context, mgr ctrl.Manager, o Options, elsewhere cache.Cache) error {
	t := &term{Manager: mgr, handlers: &handlers{}}
	defer t.handlers.remove()
	all := o.Metrics
	if all != nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if elsewhere != nil {
		elsewhere = tracked{elsewhere, t.handlers}
	}
	if err := setup(t, o, mgr.GetCache(), elsewhere); err != nil {
		return err
	}
	if own, ok := o.Metrics.(*prometheus.Registry); ok {
		if err := all.Register(own); err != nil {
			return fmt.Errorf("registering the metrics: %w", err)
		}
		defer all.Unregister(own)
	}
	running, ctx := errgroup.WithContext(ctx)
	for _, added := range t.added {
		running.Go(func() error { return added.Start(ctx) })
	}
	return running.Wait()
}

// term is the manager for the controllers of one term: what they add to it ends with the term.
type term struct {
	ctrl.Manager
	handlers *handlers
	added    []manager.Runnable
}

// Add implements manager.Manager.
func (t *term) Add(r manager.Runnable) error {
	t.added = append(t.added, r)
	return nil
}

// GetControllerOptions implements manager.Manager. The controllers of all terms have the same names.
func (t *term) GetControllerOptions() config.Controller {
	o := t.Manager.GetControllerOptions()
	o.SkipNameValidation = new(true)
	return o
}

// GetCache implements cluster.Cluster.
func (t *term) GetCache() cache.Cache { return tracked{t.Manager.GetCache(), t.handlers} }

// handlers are those that a term has added to informers.
type handlers struct {
	mu      sync.Mutex
	over    bool
	removal []func() error
}

// add adds a handler, unless the term is over.
func (h *handlers) add(i cache.Informer, add func() (toolscache.ResourceEventHandlerRegistration, error)) (
	toolscache.ResourceEventHandlerRegistration, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, errors.New("this manager no longer leads")
	}
	registration, err := add()
	if err == nil {
		h.removal = append(h.removal, func() error { return i.RemoveEventHandler(registration) })
	}
	return registration, err
}

// remove removes all of them, and refuses more.
func (h *handlers) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, remove := range h.removal {
		_ = remove() // The informer has ended with the process.
	}
}

// tracked is a cache whose handlers can be removed.
type tracked struct {
	cache.Cache
	handlers *handlers
}

// GetInformer implements cache.Informers.
func (c tracked) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer,
	error) {
	informer, err := c.Cache.GetInformer(ctx, o, opts...)
	return trackedInformer{informer, c.handlers}, err
}

// GetInformerForKind implements cache.Informers.
func (c tracked) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind,
	opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformerForKind(ctx, kind, opts...)
	return trackedInformer{informer, c.handlers}, err
}

type trackedInformer struct {
	cache.Informer
	handlers *handlers
}

// AddEventHandler implements cache.Informer.
func (i trackedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i trackedInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (
	toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i trackedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (
	toolscache.ResourceEventHandlerRegistration, error) {
	return i.handlers.add(i.Informer, func() (toolscache.ResourceEventHandlerRegistration, error) {
		return i.Informer.AddEventHandlerWithOptions(h, o)
	})
}
