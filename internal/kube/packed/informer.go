// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package packed keeps API objects in few bytes: in the store of a client-go informer each is one string, of which its
// readers and handlers get an object of their own. Most objects of a cache are read rarely and stay for long, and an
// object in Go is many times what it says.
package packed

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Options say of indexes how they are looked up.
type Options struct {
	// Namespaced are indexes that nobody asks about all namespaces, for which the store keeps nothing then.
	Namespaced []string
	// Siblings say of an index whose values are names of objects by which other index such an object and those that name it
	// are found together. The store keeps nothing for it: it looks among them. Such an index is namespaced, too.
	Siblings map[string]string
}

// informer is one of client-go that transforms objects into items, and makes objects of those for everybody outside.
type informer struct {
	cache.SharedIndexInformer

	object  reflect.Type
	words   words
	options Options
	// indexers are of objects, and indexes their names in the order in which items have their values.
	indexers cache.Indexers
	indexes  []string
	// indexed is true once there are items.
	indexed atomic.Bool
}

// NewInformer returns an informer of namespaced objects, which are made from what example is made from. Its store is
// only read, and indexes are added before it runs.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers,
	o Options) (cache.SharedIndexInformer, error) {
	i := &informer{SharedIndexInformer: cache.NewSharedIndexInformer(lw, example, resync, cache.Indexers{}),
		object: reflect.TypeOf(example).Elem(), options: o, indexers: cache.Indexers{}}
	if err := errors.Join(i.AddIndexers(indexers), i.SetTransform(nil)); err != nil {
		return nil, fmt.Errorf("making an informer of %T: %w", example, err)
	}
	return i, nil
}

// AddIndexers implements cache.SharedIndexInformer. Objects are indexed when they are packed.
func (i *informer) AddIndexers(added cache.Indexers) error {
	if i.indexed.Load() {
		return errors.New("objects have been indexed already: add indexes before the informer runs")
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		number := len(i.indexes)
		i.indexers[name], i.indexes = added[name], append(i.indexes, name)
		if i.options.Siblings[name] != "" {
			continue
		}
		if err := i.SharedIndexInformer.AddIndexers(cache.Indexers{name: func(o any) ([]string, error) {
			if one, ok := o.(item); ok {
				return one.values(number), nil
			}
			return added[name](o)
		}}); err != nil {
			return fmt.Errorf("adding index %s: %w", name, err)
		}
	}
	return nil
}

// isNamespaced reports whether the index has values within namespaces alone.
func (i *informer) isNamespaced(index string) bool {
	return i.options.Siblings[index] != "" || slices.Contains(i.options.Namespaced, index)
}

// SetTransform implements cache.SharedInformer.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	err := i.SharedIndexInformer.SetTransform(func(o any) (any, error) {
		if _, ok := o.(item); ok { // It was part of a list that was watched.
			return o, nil
		}
		if transform != nil {
			var err error
			if o, err = transform(o); err != nil {
				return nil, err
			}
		}
		return i.pack(o)
	})
	if err != nil {
		return fmt.Errorf("setting the transform of %s: %w", i.object, err)
	}
	return nil
}

func (i *informer) pack(o any) (any, error) {
	i.indexed.Store(true)
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

// AddEventHandler implements cache.SharedInformer.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, period time.Duration) (
	cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (
	cache.ResourceEventHandlerRegistration, error) {
	//nolint:wrapcheck // The informer's own error.
	return i.SharedIndexInformer.AddEventHandlerWithOptions(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(o any, initial bool) { h.OnAdd(i.unpack(o), initial) },
		UpdateFunc: func(before, after any) { h.OnUpdate(i.unpack(before), i.unpack(after)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				last.Obj = i.unpack(last.Obj)
				o = last
			}
			h.OnDelete(i.unpack(o))
		},
	}, o)
}

// GetStore implements cache.SharedInformer.
func (i *informer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer implements cache.SharedIndexInformer.
func (i *informer) GetIndexer() cache.Indexer { return store{i.SharedIndexInformer.GetIndexer(), i} }

// store makes objects of what it finds.
type store struct {
	cache.Indexer

	of *informer
}

// List implements cache.Store.
func (s store) List() []any { return s.unpack(s.Indexer.List()) }

// Get implements cache.Store.
func (s store) Get(o any) (any, bool, error) {
	found, ok, err := s.Indexer.Get(o)
	return s.of.unpack(found), ok, err //nolint:wrapcheck // The store's own error.
}

// GetByKey implements cache.Store.
func (s store) GetByKey(key string) (any, bool, error) {
	found, ok, err := s.Indexer.GetByKey(key)
	return s.of.unpack(found), ok, err //nolint:wrapcheck // The store's own error.
}

// Index implements cache.Indexer.
func (s store) Index(name string, o any) ([]any, error) {
	found, err := s.Indexer.Index(name, o)
	return s.unpack(found), err //nolint:wrapcheck // The store's own error.
}

// ByIndex implements cache.Indexer.
func (s store) ByIndex(name, value string) ([]any, error) {
	namespace, _, _ := strings.Cut(value, "/")
	if s.of.isNamespaced(name) && strings.HasPrefix(namespace, "_") { // What controller-runtime puts there for all.
		return nil, fmt.Errorf("index %s is of single namespaces: name one", name)
	}
	if together := s.of.options.Siblings[name]; together != "" {
		found, err := s.siblings(slices.Index(s.of.indexes, name), together, value)
		return s.unpack(found), err
	}
	found, err := s.Indexer.ByIndex(name, value)
	return s.unpack(found), err //nolint:wrapcheck // The store's own error.
}

// siblings are the items that have the value of the index of that number: they are among those that the index together
// finds with the one that the value names, or anywhere if that is unknown.
func (s store) siblings(number int, together, value string) (all []any, err error) {
	if named, ok, _ := s.Indexer.GetByKey(value); ok {
		all, err = s.Indexer.Index(together, named)
	} else {
		all = s.Indexer.List()
	}
	return slices.DeleteFunc(all, func(o any) bool {
		one, ok := o.(item)
		return !ok || !slices.Contains(one.values(number), value)
	}), err //nolint:wrapcheck // The store's own error.
}

// unpack makes objects of items, in their place.
func (s store) unpack(found []any) []any {
	for n := range found {
		found[n] = s.of.unpack(found[n])
	}
	return found
}
