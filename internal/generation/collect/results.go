// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"
	"slices"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
)

// Span is the time in which a call ran.
type Span struct{ Began, Ended time.Time }

// Results makes a step of the results of a batch, each of at most so many bytes, and of their files. It shortens long
// results until all fit into one object: every call keeps an answer. ran are the times of the calls, by their ids.
func Results(results []v1beta1.ToolResult, files []v1beta1.MessageFile, most int, ran map[string]Span) Step {
	for limit := most; ; limit /= 2 {
		s := Step{}
		for _, result := range results {
			s.Truncated = s.Truncated || limit < most && len(result.Output) > limit
			result.Output = tools.Truncate(result.Output, limit)
			s.Parts = append(s.Parts, v1beta1.MessagePart{
				Type: v1beta1.PartToolResult, ToolResult: &result, StartedAt: microTime(ran[result.ID].Began),
				FinishedAt: microTime(ran[result.ID].Ended),
			})
		}
		if with, fits := WithFiles(s, files); fits || limit == 0 {
			return with
		}
	}
}

// WithFiles adds files to the parts of a step. If they do not fit into one object, it adds none.
func WithFiles(s Step, files []v1beta1.MessageFile) (with Step, fits bool) {
	r, all := newRoom(), slices.Clip(s.Parts)
	for i := range files {
		all = append(all, v1beta1.MessagePart{Type: v1beta1.PartFile, File: &files[i]})
	}
	for i := range all {
		if !r.part(&all[i]) {
			return s, false
		}
	}
	s.Parts = all
	return s, true
}

// FromFrames makes a step of the published parts of an attempt that never ended: incomplete texts and reasoning, valid
// calls, and results of tools. Provider metadata were not published, and are lost.
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

// ResultsIn are the published results of Parley's own tools, in the order of their ends, and when the calls ran.
func ResultsIn(frames []parts.Frame) (results []v1beta1.ToolResult, ran map[string]Span) {
	ran = map[string]Span{}
	for i := range frames {
		part := &frames[i].Part
		if frames[i].Role != string(v1beta1.RoleTool) {
			continue
		}
		switch part.Type {
		case parts.ToolStart:
			ran[part.ID] = Span{Began: part.At}
		case parts.ToolResult:
			ran[part.ID] = Span{Began: ran[part.ID].Began, Ended: part.At}
			results = append(results, v1beta1.ToolResult{ID: part.ID, Name: part.Name, Output: part.Text,
				IsError: part.IsError})
		}
	}
	return results, ran
}

// asStreamed converts the part back to one of the provider's stream; false if it is not kept.
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
