// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package recordings_test

import (
	"slices"
	"strings"
)

// difference is one between a recorded request and Parley's that is meant to be.
type difference struct {
	// in is what the names of the recordings have in common.
	in string
	// why it is harmless.
	why string
	// without takes what differs out of a request.
	without func(request) request
}

// harmless are all of them, besides settings of a call, which are not compared.
var harmless = []difference{
	{"vertex-gemini", "Vertex gives calls no ids, and is not one of Parley's providers: Gemini is asked with ids",
		func(r request) request {
			return r.each(func(s *said) { s.ID = "" })
		}},
	{"avian-kimi", "the recording has a line feed within the blanks at the end of a text, which was not on the wire",
		func(r request) request {
			return r.each(func(s *said) { s.Body = strings.TrimSpace(s.Body) })
		}},
	{"AnthropicWebSearch", "Parley gives what a search has found back as it came: a page without an age says so",
		func(r request) request {
			return r.each(func(s *said) { s.Body = strings.ReplaceAll(s.Body, `"page_age":null,`, "") })
		}},
	{"ComputerUse", "Parley does not offer Anthropic's own tool to use a computer, and results of tools are text",
		func(r request) request {
			r.Said = slices.DeleteFunc(r.Said, func(s said) bool {
				return s.Kind == "result" || s.Role == "assistant" &&
					s.Kind == "text"
			})
			return r
		}},
}

func (r request) each(change func(*said)) request {
	r.Said = slices.Clone(r.Said)
	for i := range r.Said {
		change(&r.Said[i])
	}
	return r
}
