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

func (f *Follower) keep(bytes int) bool { return f.Memory == nil || f.Memory.Keep(bytes) }

// borrow waits for room for one message that was not kept.
func (f *Follower) borrow(ctx context.Context) (giveBack func(), err error) {
	if f.Memory == nil {
		return func() {}, nil
	}
	return f.Memory.Borrow(ctx, borrowBytes)
}

// letGo gives back what is kept of a message, once.
func (f *Follower) letGo(item *item) {
	if item.message != nil && f.Memory != nil {
		f.Memory.Drop(len(item.message.Data))
	}
	item.message = nil
}

// release gives back what is kept of messages.
func (f *Follower) release(items []item) {
	for i := range items {
		f.letGo(&items[i])
	}
}
