// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// MaxResultBytes is the most that a tool's result may have: 64 KiB, which is what chat systems give a model whose
	// context limit is not known.
	MaxResultBytes = 64 << 10
	// minResultBytes is what it may have however small the context is: less would often say nothing.
	minResultBytes = 16 << 10
)

// ResultLimit is the most bytes that a result may have for a model whose context holds so many tokens: a third of it,
// at 3 bytes a token. 0: the limit is not known.
func ResultLimit(contextLimit int64) int {
	if contextLimit == 0 {
		return MaxResultBytes
	}
	return int(max(minResultBytes, min(contextLimit, MaxResultBytes)))
}

// ResultLimitOf is ResultLimit by how much the model's context holds that replied last in the chat.
func ResultLimitOf(chat *v1alpha1.Chat) int {
	if chat.Status.Context == nil {
		return ResultLimit(0)
	}
	return ResultLimit(chat.Status.Context.Limit)
}

// markerRoom is kept free for the marker that says how much was left out.
const markerRoom = 256

// Truncate shortens a text to at most limit bytes: the first two thirds and the last third stay, with a marker
// between them.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	room := max(0, limit-markerRoom)
	head := clip.Bytes(text, room*2/3)
	tail := clip.LastBytes(text, room-room*2/3)
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, len(text)-len(head)-len(tail), tail)
}
