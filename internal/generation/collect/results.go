// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// Span is when a call ran.
type Span struct{ Began, Ended time.Time }

// Results makes one step of the results of a batch of calls, each of at most so many bytes. If they do not fit into one
// object together, the long ones are shortened until they do: every call keeps an answer.
// ran says when calls ran, by their ids.
func Results(results []v1alpha1.ToolResult, most int, ran map[string]Span) Step {
	s := Step{}
	for limit := most; ; limit /= 2 {
		r := newRoom()
		s.Parts = nil
		for i := range results {
			result := results[i]
			s.Truncated = s.Truncated || limit < most && len(result.Output) > limit
			result.Output = tools.Cap(result.Output, limit)
			span := ran[result.ID]
			part := v1alpha1.MessagePart{
				Type: v1alpha1.PartToolResult, ToolResult: &result, StartedAt: microTime(span.Began),
				FinishedAt: microTime(span.Ended),
			}
			r.part(&part)
			s.Parts = append(s.Parts, part)
		}
		if !r.full || limit == 0 {
			return s
		}
	}
}
