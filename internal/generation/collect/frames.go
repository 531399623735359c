// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// FromFrames makes a step of what was streamed of an attempt that never ended: texts and reasoning as far as they came,
// whole calls whose arguments are valid, and results of tools. What the provider wants back with them was not streamed,
// and is lost.
func FromFrames(frames []parts.Frame) Step {
	if results, ran := ResultsIn(frames); len(results) > 0 {
		return Results(results, nil, tools.MaxResultBytes, ran)
	}
	reply := NewAccumulator("", 0, nil)
	for i := range frames {
		if streamed, ok := asStreamed(&frames[i].Part); ok {
			reply.Add(&streamed)
		}
	}
	return reply.Finish()
}

// ResultsIn are the results of Parley's own tools that were streamed,
// in the order in which the calls ended, and when they ran.
func ResultsIn(frames []parts.Frame) (results []v1alpha1.ToolResult, ran map[string]Span) {
	ran = map[string]Span{}
	for i := range frames {
		part := &frames[i].Part
		if frames[i].Role != string(v1alpha1.RoleTool) {
			continue
		}
		switch part.Type {
		case parts.ToolStart:
			ran[part.ID] = Span{Began: part.At}
		case parts.ToolResult:
			ran[part.ID] = Span{Began: ran[part.ID].Began, Ended: part.At}
			results = append(results, v1alpha1.ToolResult{ID: part.ID, Name: part.Name, Output: part.Text,
				IsError: part.IsError})
		}
	}
	return results, ran
}

// asStreamed is the part as the provider's stream had it; false if nothing of it is kept.
func asStreamed(part *parts.Part) (fantasy.StreamPart, bool) {
	switch part.Type {
	case parts.Text:
		return fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: part.ID, Delta: part.Text}, true
	case parts.Reasoning:
		return fantasy.StreamPart{Type: fantasy.StreamPartTypeReasoningDelta, ID: part.ID, Delta: part.Text}, true
	case parts.ToolCall:
		return fantasy.StreamPart{
			Type: fantasy.StreamPartTypeToolCall, ID: part.ID, ToolCallName: part.Name, ToolCallInput: part.Text,
		}, json.Valid([]byte(part.Text))
	}
	return fantasy.StreamPart{}, false
}
