// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

// Attaching is a Tool whose result comes with a file. It is called alone, so that the message has room for the file.
// The file is not streamed, so that such a call is made again after a crash even where its result is known.
type Attaching interface {
	Exclusive
	Repeatable
	// Attaching marks the tool.
	Attaching()
}

// Attaches reports whether results of the tool come with a file.
func (r *Registry) Attaches(name string) bool {
	_, ok := r.tools[name].(Attaching)
	return ok
}
