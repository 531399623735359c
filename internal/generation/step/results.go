// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// Results makes one step of the results of a batch of calls, each of at most so many bytes. If they do not fit into one object
// together, the long ones are shortened until they do: every call keeps an answer.
func Results(results []v1alpha1.ToolResult, most int) Step {
	s := Step{}
	for limit := most; ; limit /= 2 {
		r := newRoom()
		s.Parts = nil
		for i := range results {
			result := results[i]
			s.Truncated = s.Truncated || limit < most && len(result.Output) > limit
			result.Output = tools.Cap(result.Output, limit)
			part := v1alpha1.MessagePart{Type: v1alpha1.PartToolResult, ToolResult: &result}
			r.part(&part)
			s.Parts = append(s.Parts, part)
		}
		if !r.full || limit == 0 {
			return s
		}
	}
}
