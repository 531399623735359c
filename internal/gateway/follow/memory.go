// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import "context"

// Memory is what all followers of a process may hold of messages together.
type Memory interface {
	// Keep takes room for bytes until Drop, if there is any; it does not wait.
	Keep(bytes int) bool
	// Drop gives back what Keep took.
	Drop(bytes int)
	// Borrow waits for room for bytes. An error means that ctx is done. Who waits in it may hold what Keep took, and
	// nothing that Borrow gave.
	Borrow(ctx context.Context, bytes int) (giveBack func(), err error)
}

// borrowBytes is room for one message: what etcd takes at most of an object.
const borrowBytes = 3 << 19

// room is what is held of messages for one follower.
type room struct{ memory Memory } // nil: nothing bounds it

func (r room) keep(bytes int) bool { return r.memory == nil || r.memory.Keep(bytes) }

// borrow waits for room for one message that was not kept.
func (r room) borrow(ctx context.Context) (giveBack func(), err error) {
	if r.memory == nil {
		return func() {}, nil
	}
	return r.memory.Borrow(ctx, borrowBytes)
}

// letGo gives back what is kept of a message, once.
func (r room) letGo(item *item) {
	if item.message != nil && r.memory != nil {
		r.memory.Drop(len(item.message.Data))
	}
	item.message = nil
}

// release gives back what is kept of messages.
func (r room) release(items []item) {
	for i := range items {
		r.letGo(&items[i])
	}
}
