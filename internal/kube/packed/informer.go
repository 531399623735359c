// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package packed keeps API objects in few bytes: in the indexer of client-go each is one string. Each reader gets an
// object of its own, and so does each event. Most objects of a cache are read rarely and stay for long, and an object
// in Go is many times what it says.
package packed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// Options say of indexes how they are looked up.
type Options struct {
	// Namespaced are indexes without look-ups in all namespaces: the store keeps nothing for those.
	Namespaced []string
	// Siblings say of an index whose values are names of objects by which other index such an object and those that name
	// it are found together. The store keeps nothing for it: it looks among them. Such an index is namespaced, too.
	Siblings map[string]string
}

// informer lets many hear what a controller of client-go says of items, and read what it keeps. It calls handlers in
// the controller's goroutine, which continues when they return: the queue that a shared informer has for each handler
// grows by what is listed first, and stays as large. So a handler must not wait for another change of the same kind.
type informer struct {
	cache.Controller

	indexer   cache.Indexer
	object    reflect.Type
	words     words
	options   Options
	transform cache.TransformFunc
	// indexers are of objects, and indexes their names in the order in which items have their values.
	indexers cache.Indexers
	indexes  []string
	// started is true once there may be items.
	started, stopped atomic.Bool

	// mu is held while handlers are called.
	mu       sync.Mutex
	handlers []*registration
}

// NewInformer returns an informer of namespaced objects, which are made from what example is made from. Its store is
// only read; indexes and the transform are set before it runs. A handler that is added while it runs may hear of an
// object twice, and all hear of all objects again after each resync, or when those are listed again.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers,
	o Options) (cache.SharedIndexInformer, error) {
	i := &informer{object: reflect.TypeOf(example).Elem(), options: o, indexers: cache.Indexers{}}
	kept, controller := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: example,
		ResyncPeriod: resync, Indexers: cache.Indexers{}, Transform: i.pack, Handler: i.forwarder()})
	indexer, ok := kept.(cache.Indexer)
	if !ok {
		return nil, fmt.Errorf("making an informer of %s: %T has no indexes", i.object, kept)
	}
	i.indexer, i.Controller = indexer, controller
	return i, i.AddIndexers(indexers)
}

// AddIndexers implements cache.SharedIndexInformer. Objects are indexed when they are packed.
func (i *informer) AddIndexers(added cache.Indexers) error {
	if i.started.Load() {
		return errStarted
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		number := len(i.indexes)
		i.indexers[name], i.indexes = added[name], append(i.indexes, name)
		if i.options.Siblings[name] != "" {
			continue
		}
		if err := i.indexer.AddIndexers(cache.Indexers{name: func(o any) ([]string, error) {
			if one, ok := o.(item); ok {
				return one.values(number), nil
			}
			return added[name](o)
		}}); err != nil {
			return fmt.Errorf("indexing %s by %s: %w", i.object, name, err)
		}
	}
	return nil
}

// errStarted says that something comes too late.
var errStarted = errors.New("the informer has been started")

// SetTransform implements cache.SharedInformer.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	if i.started.Load() {
		return errStarted
	}
	i.transform = transform
	return nil
}

// Run implements cache.SharedInformer.
func (i *informer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext implements cache.SharedInformer.
func (i *informer) RunWithContext(ctx context.Context) {
	if i.started.Swap(true) {
		return
	}
	i.Controller.RunWithContext(ctx)
	i.stopped.Store(true)
}

// IsStopped implements cache.SharedInformer.
func (i *informer) IsStopped() bool { return i.stopped.Load() }

// GetController implements cache.SharedInformer.
func (i *informer) GetController() cache.Controller { return i }

// GetStore implements cache.SharedInformer.
func (i *informer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer implements cache.SharedIndexInformer.
func (i *informer) GetIndexer() cache.Indexer { return store{i.indexer, i} }

// SetWatchErrorHandler implements cache.SharedInformer: errors of watches are only logged.
func (*informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return errors.ErrUnsupported }

// SetWatchErrorHandlerWithContext implements cache.SharedInformer, like SetWatchErrorHandler.
func (*informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errors.ErrUnsupported
}

// isNamespaced reports whether the index has values within namespaces alone.
func (i *informer) isNamespaced(index string) bool {
	return i.options.Siblings[index] != "" || slices.Contains(i.options.Namespaced, index)
}

// pack makes an item of an object. One of a list that was watched has been here before.
func (i *informer) pack(o any) (any, error) {
	if _, ok := o.(item); ok {
		return o, nil
	}
	if i.transform != nil {
		var err error
		if o, err = i.transform(o); err != nil {
			return nil, err
		}
	}
	object, ok := o.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("packing a %T: it is no API object", o)
	}
	values := make([][]string, len(i.indexes))
	for n, name := range i.indexes {
		var err error
		if values[n], err = i.indexers[name](o); err != nil {
			return nil, fmt.Errorf("indexing %s by %s: %w", object.GetName(), name, err)
		}
		if i.isNamespaced(name) {
			values[n] = slices.DeleteFunc(values[n], func(value string) bool {
				return !strings.HasPrefix(value, object.GetNamespace()+"/")
			})
		}
	}
	return newItem(&i.words, object, values), nil
}

// unpack makes the object of an item. What is none it returns as it is.
func (i *informer) unpack(o any) any {
	if one, ok := o.(item); ok {
		return one.unpack(&i.words, i.object, len(i.indexes))
	}
	return o
}
