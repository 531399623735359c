// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

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
	return s.of.unpack(found), ok, err
}

// GetByKey implements cache.Store.
func (s store) GetByKey(key string) (any, bool, error) {
	found, ok, err := s.Indexer.GetByKey(key)
	return s.of.unpack(found), ok, err
}

// Index implements cache.Indexer.
func (s store) Index(name string, o any) ([]any, error) {
	found, err := s.Indexer.Index(name, o)
	return s.unpack(found), err
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
	return s.unpack(found), err
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
	}), err
}

// unpack makes objects of items, in their place.
func (s store) unpack(found []any) []any {
	for n := range found {
		found[n] = s.of.unpack(found[n])
	}
	return found
}
