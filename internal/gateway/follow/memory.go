// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"

	"parley.dev/parley/internal/netguard/limit"
)

// Memory bounds the bytes of messages that all followers of a process hold: one half for those that are kept while a
// history is walked, which is never waited for, and one for those that are being sent. Who waits for that half holds
// nothing of it, so that no two wait for each other. A nil Memory bounds nothing.
type Memory struct{ kept, sent limit.Limiter }

// NewMemory makes a Memory of so many bytes.
func NewMemory(bytes int64) *Memory {
	half := max(1, bytes/2)
	return &Memory{limit.New(half), limit.New(half)}
}

// messageBytes is memory for one message: what etcd takes at most of an object.
const messageBytes = 3 << 19

// keep takes memory for bytes, if there is any.
func (m *Memory) keep(bytes int) bool { return m == nil || m.kept.TryAcquire(int64(bytes)) }

// acquire waits for memory for one message that was not kept.
func (m *Memory) acquire(ctx context.Context) (release func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	if release, err = m.sent.Acquire(ctx, messageBytes); err != nil {
		return nil, fmt.Errorf("waiting for memory: %w", err)
	}
	return release, nil
}

// release gives back what is kept of messages, once.
func (m *Memory) release(items ...*item) {
	for _, item := range items {
		if item.message != nil && m != nil {
			m.kept.Release(int64(len(item.message.Data)))
		}
		item.message = nil
	}
}
