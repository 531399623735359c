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

// Results makes one step of the results of a batch of calls, each of at most so many bytes, and of the files that come
// with them. If they do not fit into one object together, the long results are shortened until they do: every call
// keeps an answer. ran says when calls ran, by their ids.
func Results(results []v1alpha1.ToolResult, files []v1alpha1.MessageFile, most int, ran map[string]Span) Step {
	s := Step{}
	for limit := most; ; limit /= 2 {
		r := newRoom()
		s.Parts = nil
		beside := make([]v1alpha1.MessagePart, len(files))
		for i := range files {
			beside[i] = v1alpha1.MessagePart{Type: v1alpha1.PartFile, File: &files[i]}
			r.part(&beside[i])
		}
		for i := range results {
			result := results[i]
			s.Truncated = s.Truncated || limit < most && len(result.Output) > limit
			result.Output = tools.Truncate(result.Output, limit)
			span := ran[result.ID]
			part := v1alpha1.MessagePart{
				Type: v1alpha1.PartToolResult, ToolResult: &result, StartedAt: microTime(span.Began),
				FinishedAt: microTime(span.Ended),
			}
			r.part(&part)
			s.Parts = append(s.Parts, part)
		}
		s.Parts = append(s.Parts, beside...)
		if !r.full || limit == 0 {
			return s
		}
	}
}
