// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/printable"
)

// detailOf are the lines that show all that a call asks people for, or will do. They are what others say.
func detailOf(call *v1alpha1.PendingToolCall) []string {
	switch call.ApprovalCause {
	case v1alpha1.ApprovalInputRequired:
		return inputsOf(call.InputRequests)
	case v1alpha1.ApprovalReviewRequired:
		return linesOf(call.Proposal)
	case v1alpha1.ApprovalPlanProposed:
		return planOf(call.Input)
	}
	if call.Input == "" && call.Kind == v1alpha1.RequiresClient {
		return []string{"(no arguments, or more than the status shows: then the message of the call has them)"}
	}
	return inputLines(call.Input)
}

// linesOf are the lines of a text, without the last one if it is empty.
func linesOf(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

// inputLines are the lines that show all of the JSON of a call's arguments: indented, and with a line break after each
// \n of a string.
func inputLines(input string) []string {
	var pretty bytes.Buffer
	if input == "" {
		return []string{"(no arguments)"}
	}
	if err := json.Indent(&pretty, []byte(input), "", "  "); err != nil {
		return linesOf(input)
	}
	var lines []string
	for line := range strings.Lines(pretty.String()) {
		lines = append(lines, brokenLines(strings.TrimSuffix(line, "\n"))...)
	}
	return lines
}

// brokenLines breaks a line of JSON after each \n in it. Backslashes stand in strings only, each before what it
// escapes.
func brokenLines(line string) (lines []string) {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))] + "    "
	from := 0
	for at := 0; at < len(line); at++ {
		if line[at] != '\\' {
			continue
		}
		at++
		if line[at] == 'n' && line[at+1] != '"' {
			lines = append(lines, line[from:at+1])
			line, from, at = indent+line[at+1:], 0, len(indent)-1
		}
	}
	return append(lines, line[from:])
}

// planOf are the lines of the plan that a call proposes, unless the call has more to show.
func planOf(input string) []string {
	var arguments map[string]string
	if err := json.Unmarshal([]byte(input), &arguments); err != nil || len(arguments) != 1 || arguments["plan"] == "" {
		return inputLines(input)
	}
	return linesOf(printable.Visible(arguments["plan"]))
}

// InputRequest is a request for input of the Model Context Protocol, as far as it is shown.
type InputRequest struct {
	Params struct {
		Message string `json:"message"`
		URL     string `json:"url"`
		Schema  struct {
			Properties map[string]InputField `json:"properties"`
			Required   []string              `json:"required"`
		} `json:"requestedSchema"`
	} `json:"params"`
}

// InputField is a member of the object that answers a request.
type InputField struct {
	Type        string        `json:"type"`
	Title       string        `json:"title"`
	Description string        `json:"description"`
	Enum        []string      `json:"enum"`
	OneOf       []inputChoice `json:"oneOf"`
	Items       struct {
		Enum  []string      `json:"enum"`
		AnyOf []inputChoice `json:"anyOf"`
	} `json:"items"`
}

type inputChoice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// inputsOf says what is asked for, and how the answer is made up.
func inputsOf(requests string) (lines []string) {
	var asked map[string]InputRequest
	if err := json.Unmarshal([]byte(requests), &asked); err != nil || len(asked) == 0 {
		return []string{OneLine(requests)}
	}
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		request := asked[id].Params
		about := printable.Visible(request.Message)
		if len(asked) > 1 {
			about = id + ": " + about
		}
		lines = append(lines, linesOf(about)...)
		if request.URL != "" {
			lines = append(lines, "  open "+flat(request.URL))
		}
		for _, name := range slices.Sorted(maps.Keys(request.Schema.Properties)) {
			lines = append(lines, request.Schema.Properties[name].lines(name, request.Schema.Required)...)
		}
	}
	return lines
}

// lines say what the field is.
func (f InputField) lines(name string, required []string) []string {
	kind := f.Type
	if choices := f.choices(); len(choices) > 0 {
		one := "one of"
		if f.Type == "array" {
			one = "some of"
		}
		kind = one + " " + strings.Join(choices, ", ")
	}
	if !slices.Contains(required, name) {
		kind += ", optional"
	}
	about := linesOf(strings.TrimSpace(printable.Visible(f.Description)))
	if f.Title != "" {
		about[0] = strings.TrimSuffix(flat(f.Title)+": "+about[0], ": ")
	}
	first := strings.TrimSuffix(fmt.Sprintf("  %s (%s): %s", flat(name), flat(kind), about[0]), ": ")
	lines := []string{first}
	for _, line := range about[1:] {
		lines = append(lines, "    "+line)
	}
	return lines
}

func (f InputField) choices() []string {
	choices := slices.Concat(f.Enum, f.Items.Enum)
	for _, choice := range slices.Concat(f.OneOf, f.Items.AnyOf) {
		words := fmt.Sprintf("%q", choice.Const)
		if choice.Title != "" && choice.Title != choice.Const {
			words += " (" + choice.Title + ")"
		}
		choices = append(choices, words)
	}
	return choices
}
