// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

// Repeatable is a Tool whose calls may be made again under the same Call.Key: what a call does is done once, however
// often it is made, and each time it is answered with what came of it. Once the context of a call has ended with
// ErrInterrupted, Run does not begin it, but ends what an earlier life of the process has begun under its key.
type Repeatable interface {
	Tool
	// Repeatable marks the tool.
	Repeatable()
}

// Repeatable reports whether calls of the tool may be made again.
func (r *Registry) Repeatable(name string) bool {
	_, ok := r.tools[name].(Repeatable)
	return ok
}
