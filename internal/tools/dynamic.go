// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import "maps"

// Plus returns a registry that has these tools besides, such as those of a chat's own servers. One whose name is taken
// is left out. absent says why there is no tool of a name that might be one of theirs; nil: there is nothing to say.
func (r *Registry) Plus(more []Tool, absent func(name string) error) *Registry {
	plus := &Registry{tools: maps.Clone(r.tools), added: map[string]bool{}, absent: absent}
	for _, tool := range more {
		if plus.tools[tool.Name()] == nil {
			plus.tools[tool.Name()], plus.added[tool.Name()] = tool, true
		}
	}
	return plus
}

// Once is a Tool whose calls may have effects that nobody can take back, nor ask about. A call that an earlier attempt
// may have made is not made again: see Batch.Again.
type Once interface {
	Tool
	// Once marks the tool.
	Once()
}

// once reports whether calls of the tool must not be made twice.
func (r *Registry) once(name string) bool {
	_, ok := r.tools[name].(Once)
	return ok
}
