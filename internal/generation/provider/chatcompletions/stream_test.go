// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import "testing"

// BenchmarkALineThatNeedsNoRepair is what each token costs.
func BenchmarkALineThatNeedsNoRepair(b *testing.B) {
	line := []byte(
		`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"token"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	i := &interceptor{first: &firstReasoning{}}
	for b.Loop() {
		i.Line(line)
	}
}
