// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import "context"

const (
	// defaultAtWork is as many as one node's processors and disk can do with, and more than one chat asks for.
	defaultAtWork = 64
	// defaultWaiting is as many commands as a workspace runs at once, several times. Who waits costs a connection.
	defaultWaiting = 256
	// defaultSessions is more than the chats of a family have MCP servers at work at once.
	defaultSessions = 32
	// largeBodies bounds the memory for contents and edits: each takes up to 16 MiB, some times over.
	largeBodies = 4
)

// slots are places of which there is a number.
type slots chan struct{}

func newSlots(n, otherwise int) slots {
	if n == 0 {
		n = otherwise
	}
	return make(slots, n)
}

// try takes a place if there is one.
func (s slots) try() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// take waits for a place.
func (s slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slots) leave() { <-s }

// close waits until all have left, and lets nobody in any more.
func (s slots) close() {
	for range cap(s) {
		s <- struct{}{}
	}
}
