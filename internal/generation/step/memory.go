// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/prompt"
)

const (
	// DefaultPromptMemory is how much memory the large prompts of the calls under way may take together: what is left of
	// the 900 MiB of a generation pod when 100 chats have small ones and 64 MiB of histories are at hand. Without this
	// limit 14 chats with 12 MiB of images each would kill the pod and every attempt in it, again and again.
	DefaultPromptMemory = 512 << 20
	// heldPerByte is how often a byte of a prompt is in memory while its call is under way: as a file it was measured to
	// be there 5.3 to 6.4 times, in base64 and as JSON, and garbage comes on top.
	heldPerByte = 8
	// largePrompt is the size from which a prompt is counted. 100 smaller ones take 200 MiB at the very most.
	largePrompt = 256 << 10
)

// memoryOf is how much memory a call takes of what large prompts share; 0 for a small one, which does not wait.
func memoryOf(p fantasy.Prompt) int64 {
	size := prompt.Bytes(p)
	if size < largePrompt {
		return 0
	}
	return int64(size) * heldPerByte
}
