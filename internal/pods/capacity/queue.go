// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import "strings"

// queue are the chats of one sort and one namespace that wait, first the one that has waited longest: a container/heap.
type queue []*slot

// slot of a chat: one that it has, or one that it waits for.
type slot struct {
	Chat
	// index in the queue; generates if the chat has its slot.
	index int
}

// generates is the index of those that wait no more.
const generates = -1

// before tells who of two chats of one namespace comes first.
func (p *slot) before(other *slot) bool {
	if !p.Since.Equal(other.Since) {
		return p.Since.Before(other.Since)
	}
	if c := strings.Compare(p.Key.Namespace, other.Key.Namespace); c != 0 {
		return c < 0
	}
	return p.Key.Name < other.Key.Name
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends a *slot.
func (q *queue) Push(x any) {
	p := x.(*slot)
	p.index = len(*q)
	*q = append(*q, p)
}

// Pop takes the last one out.
func (q *queue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	p.index = generates
	return p
}
