// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"parley.dev/parley/internal/generation/provider/intercept"
	"parley.dev/parley/internal/generation/provider/rewrite"
)

// Events implements intercept.Interceptor: the completion as one chunk.
func (i *interceptor) Events(document []byte) [][]byte {
	completion, ok := decoded(document)
	choices := listIn(completion, "choices")
	if !ok || len(choices) == 0 {
		return [][]byte{document}
	}
	message, _ := choices[0]["message"].(object)
	for index, call := range listIn(message, "tool_calls") {
		call["index"] = index
	}
	delete(choices[0], "message")
	choices[0]["delta"], completion["object"] = message, "chat.completion.chunk"
	chunk, err := rewrite.Encode(completion)
	if err != nil {
		return [][]byte{document}
	}
	return [][]byte{chunk, intercept.EndOfEvents}
}
