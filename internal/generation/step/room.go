// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	"charm.land/fantasy"
	"golang.org/x/sync/semaphore"

	"parley.dev/parley/internal/generation/prompt"
)

const (
	// DefaultPromptRoom is how much memory the large prompts of the calls under way may take together: what is left of the
	// 900 MiB of a generation pod when 100 chats have small ones and 64 MiB of histories are at hand.
	DefaultPromptRoom = 512 << 20
	// heldPerByte is how often a byte of a prompt is in memory while its call is under way: as a file it was measured to
	// be there 5.3 to 6.4 times, in base64 and as JSON, and garbage comes on top.
	heldPerByte = 8
	// largePrompt is the size from which a prompt is counted. 100 smaller ones take 200 MiB at the very most.
	largePrompt = 256 << 10
)

// room lets as many calls with large prompts be made at once as the pod's memory holds; the others wait for their turn.
// Without it 14 chats with 12 MiB of images each would kill the pod and every attempt in it, again and again. Small
// prompts do not wait.
type room struct {
	size int64
	left *semaphore.Weighted
}

func newRoom(size int64) room { return room{size, semaphore.NewWeighted(size)} }

// enter waits until there is room for the prompt, and returns how to leave. The error is that of ctx.
func (r room) enter(ctx context.Context, p fantasy.Prompt) (leave func(), err error) {
	size := prompt.Bytes(p)
	if size < largePrompt {
		return func() {}, nil
	}
	taken := min(int64(size)*heldPerByte, r.size)
	if err := r.left.Acquire(ctx, taken); err != nil {
		return nil, err
	}
	return func() { r.left.Release(taken) }, nil
}
