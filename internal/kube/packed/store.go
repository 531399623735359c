// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// errReadOnly says that only what the API server sends changes the store.
var errReadOnly = errors.New("the store of an informer is only read")

// store reads what the informer keeps, and makes objects of what it finds.
type store struct{ of *informer }

// Add implements cache.Store.
func (store) Add(any) error { return errReadOnly }

// Update implements cache.Store.
func (store) Update(any) error { return errReadOnly }

// Delete implements cache.Store.
func (store) Delete(any) error { return errReadOnly }

// Replace implements cache.Store.
func (store) Replace([]any, string) error { return errReadOnly }

// Resync implements cache.Store.
func (store) Resync() error { return errReadOnly }

// Bookmark implements cache.Store: the Reflector keeps the resourceVersion.
func (store) Bookmark(string) {}

// LastStoreSyncResourceVersion implements cache.Store.
func (s store) LastStoreSyncResourceVersion() string { return s.of.LastSyncResourceVersion() }

// AddIndexers implements cache.Indexer.
func (s store) AddIndexers(added cache.Indexers) error { return s.of.AddIndexers(added) }

// GetIndexers implements cache.Indexer. They index objects.
func (s store) GetIndexers() cache.Indexers { return s.of.indexers }

// List implements cache.Store.
func (s store) List() []any { return s.unpack(s.of.table.all()) }

// ListKeys implements cache.Store.
func (s store) ListKeys() []string { return keysOf(s.of.table.all()) }

// Get implements cache.Store.
func (s store) Get(o any) (any, bool, error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return nil, false, fmt.Errorf("reading an object: %w", err)
	}
	return s.GetByKey(key)
}

// GetByKey implements cache.Store.
func (s store) GetByKey(key string) (any, bool, error) {
	one, ok := s.of.table.get(key)
	if !ok {
		return nil, false, nil
	}
	return s.of.unpack(one), true, nil
}

// Index implements cache.Indexer.
func (s store) Index(name string, o any) ([]any, error) {
	index := s.of.indexers[name]
	if index == nil {
		return nil, fmt.Errorf("there is no index %s", name)
	}
	values, err := index(o)
	if err != nil {
		return nil, fmt.Errorf("indexing by %s: %w", name, err)
	}
	var all []item
	for _, value := range values {
		found, err := s.find(name, value)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return s.unpack(slices.Compact(all)), nil
}

// ByIndex implements cache.Indexer.
func (s store) ByIndex(name, value string) ([]any, error) {
	found, err := s.find(name, value)
	return s.unpack(found), err
}

// IndexKeys implements cache.Indexer.
func (s store) IndexKeys(name, value string) ([]string, error) {
	found, err := s.find(name, value)
	return keysOf(found), err
}

// ListIndexFuncValues implements cache.Indexer. Values for all namespaces are not among them.
func (s store) ListIndexFuncValues(name string) (values []string) {
	number := slices.Index(s.of.indexes, name)
	for _, one := range s.of.table.all() {
		switch {
		case name == cache.NamespaceIndex:
			values = append(values, one.namespace())
		case number >= 0:
			for _, value := range one.values(number) {
				values = append(values, indexed(one, value))
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

func (s store) unpack(items []item) []any {
	objects := make([]any, len(items))
	for i := range items {
		objects[i] = s.of.unpack(items[i])
	}
	return objects
}

// keysOf are the keys of items, which share no memory with them.
func keysOf(items []item) []string {
	keys := make([]string, len(items))
	for i := range items {
		keys[i] = strings.Clone(items[i].key())
	}
	return keys
}

// find are the items of which an index has a value. controller-runtime puts a namespace before it that no object has
// when it asks for those of all namespaces: all are looked at then, as they are for an index without groups if the
// object that they name is unknown.
func (s store) find(name, value string) ([]item, error) {
	number := slices.Index(s.of.indexes, name)
	namespace, within, _ := strings.Cut(value, "/")
	switch {
	case name == cache.NamespaceIndex:
		return among(s.of.table.all(), func(i item) bool { return i.namespace() == value }), nil
	case number < 0:
		return nil, fmt.Errorf("there is no index %s", name)
	case strings.HasPrefix(namespace, "_"):
		return among(s.of.table.all(), func(i item) bool { return i.has(number, within) }), nil
	case s.of.siblings[name] == "":
		return s.of.table.group(number, value), nil
	}
	return among(s.together(s.of.siblings[name], value), func(i item) bool {
		return i.namespace() == namespace && i.has(number, within)
	}), nil
}

// together are the items that the index finds together with that of the key, or all if there is none.
func (s store) together(index, key string) (all []item) {
	named, ok := s.of.table.get(key)
	if !ok {
		return s.of.table.all()
	}
	number := slices.Index(s.of.indexes, index)
	for _, value := range named.values(number) {
		all = append(all, s.of.table.group(number, indexed(named, value))...)
	}
	return all
}

func among(all []item, is func(item) bool) []item {
	return slices.DeleteFunc(all, func(one item) bool { return !is(one) })
}
