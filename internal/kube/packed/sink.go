// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// sink is what a Reflector writes into.
type sink struct{ informer *informer }

func (i *informer) sink() cache.TransformingStore { return sink{i} }

// Transformer implements cache.TransformingStore: objects are packed one by one as they come.
func (s sink) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		one, err := s.informer.pack(o)
		if err != nil {
			return nil, fmt.Errorf("packing an object: %w", err)
		}
		return one, nil
	}
}

// Add implements cache.ReflectorStore.
func (s sink) Add(o any) error {
	one, err := s.informer.pack(o)
	if err != nil {
		return fmt.Errorf("packing an object: %w", err)
	}
	s.informer.mu.Lock()
	defer s.informer.mu.Unlock()
	if before, existed := s.informer.table.put(one); existed {
		s.informer.tellUpdate(before, one)
	} else {
		s.informer.tellAdd(one, false)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s sink) Update(o any) error { return s.Add(o) }

// Delete implements cache.ReflectorStore.
func (s sink) Delete(o any) error {
	last, err := s.informer.pack(o)
	if err != nil {
		return fmt.Errorf("packing an object: %w", err)
	}
	s.informer.mu.Lock()
	defer s.informer.mu.Unlock()
	s.informer.table.remove(last.key())
	for _, h := range s.informer.handlers {
		h.handler.OnDelete(s.informer.unpack(last))
	}
	return nil
}

// Replace implements cache.ReflectorStore. Of objects that have not changed nobody is told.
func (s sink) Replace(objects []any, _ string) error {
	items := make([]item, len(objects))
	for n, o := range objects {
		var err error
		if items[n], err = s.informer.pack(o); err != nil {
			return fmt.Errorf("packing an object: %w", err)
		}
	}
	s.informer.mu.Lock()
	defer s.informer.mu.Unlock()
	before := s.informer.table.replace(items)
	initial := !s.informer.HasSynced()
	s.informer.synced.open() // A handler may read the store.
	s.tellMissing(before)
	for _, one := range items {
		switch old, existed := before[one.key()]; {
		case !existed:
			s.informer.tellAdd(one, initial)
		case old.version() != one.version():
			s.informer.tellUpdate(old, one)
		}
	}
	for _, h := range s.informer.handlers {
		h.synced.open()
	}
	return nil
}

// tellMissing tells of those that are there no more. What they were last nobody has seen.
func (s sink) tellMissing(before map[string]item) {
	for key, old := range before {
		if _, ok := s.informer.table.get(key); ok {
			continue
		}
		for _, h := range s.informer.handlers {
			h.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: s.informer.unpack(old)})
		}
	}
}

// Resync implements cache.ReflectorStore.
func (s sink) Resync() error {
	s.informer.mu.Lock()
	defer s.informer.mu.Unlock()
	for _, one := range s.informer.table.all() {
		s.informer.tellUpdate(one, one)
	}
	return nil
}

func (i *informer) tellAdd(one item, initial bool) {
	for _, h := range i.handlers {
		h.handler.OnAdd(i.unpack(one), initial)
	}
}

func (i *informer) tellUpdate(before, after item) {
	for _, h := range i.handlers {
		h.handler.OnUpdate(i.unpack(before), i.unpack(after))
	}
}
