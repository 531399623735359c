// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"maps"
	"slices"
	"sync"
)

// table holds items by their keys, and in groups that have a value of an index in common. Keys are parts of the items,
// so that they need no memory of their own. It is safe for concurrent use.
type table struct {
	mu    sync.RWMutex
	items map[string]item
	// groups are those of each index: the items of each value.
	groups []map[string][]item
	// grouped reports for each index whether there are groups of it.
	grouped []bool
}

// addIndex adds an index, before there are items.
func (t *table) addIndex(grouped bool) {
	t.grouped = append(t.grouped, grouped)
	t.groups = append(t.groups, map[string][]item{})
}

// get is the item of that key; false if there is none.
func (t *table) get(key string) (item, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	one, ok := t.items[key]
	return one, ok
}

// put puts the item in the place of the one that has its key, and returns that; false if there was none.
func (t *table) put(one item) (before item, existed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, existed = t.take(one.key())
	t.add(one)
	return before, existed
}

// remove removes the item of that key and returns it; false if there is none.
func (t *table) remove(key string) (before item, existed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.take(key)
}

// replace puts these items in the place of all others, and returns those.
func (t *table) replace(items []item) (before map[string]item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.items = t.items, make(map[string]item, len(items))
	for i := range t.groups {
		t.groups[i] = map[string][]item{}
	}
	for _, one := range items {
		t.add(one)
	}
	return before
}

// add adds an item whose key there is not. That of an older one would keep the whole of it.
func (t *table) add(one item) {
	if t.items == nil {
		t.items = map[string]item{}
	}
	t.items[one.key()] = one
	t.eachGroup(one, func(groups map[string][]item, value string) { groups[value] = append(groups[value], one) })
}

func (t *table) take(key string) (item, bool) {
	before, ok := t.items[key]
	if !ok {
		return "", false
	}
	delete(t.items, key)
	t.eachGroup(before, func(groups map[string][]item, value string) {
		rest := slices.DeleteFunc(groups[value], func(one item) bool { return one.key() == key })
		if groups[value] = rest; len(rest) == 0 {
			delete(groups, value)
		}
	})
	return before, true
}

func (t *table) eachGroup(one item, do func(groups map[string][]item, value string)) {
	for index, grouped := range t.grouped {
		if !grouped {
			continue
		}
		for _, value := range one.values(index) {
			do(t.groups[index], indexed(one, value))
		}
	}
}

// group are the items that have the value of the index, behind their namespace.
func (t *table) group(index int, value string) []item {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.groups[index][value])
}

func (t *table) all() []item {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.AppendSeq(make([]item, 0, len(t.items)), maps.Values(t.items))
}

// indexed is the value of an index as it is looked for: behind the namespace of the object.
func indexed(one item, value string) string { return one.namespace() + "/" + value }
