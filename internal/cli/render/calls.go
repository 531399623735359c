// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// callColumns are the columns of a table of pending calls, of which callCells returns a row.
var callColumns = []string{"ID", "TOOL", "KIND", "DECISION", "DEADLINE"}

func callCells(call *v1beta1.PendingToolCall, deadline time.Time) []string {
	return []string{flat(call.ID), flat(call.Name), string(call.Kind) + optional(" (%s)", CauseOf(call)),
		cmp.Or(decisionOf(call.Decision), "<none>"), duration.HumanDuration(max(0, time.Until(deadline)))}
}

// PrintCalls lists pending calls, and shows each in full.
func PrintCalls(out io.Writer, required *v1beta1.RequiresActionStatus) error {
	table := newTable(out, callColumns...)
	for i := range required.ToolCalls {
		table.Row(callCells(&required.ToolCalls[i], required.Deadline.Time)...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range required.ToolCalls {
		fmt.Fprintf(out, "\n%s\n", strings.Join(DescribeCall(&required.ToolCalls[i]), "\n"))
	}
	return nil
}

// PrintWaiting lists the pending calls of chats, with their namespaces if there are several.
func PrintWaiting(out io.Writer, chats []v1beta1.Chat, namespaces bool) error {
	skip := 1
	if namespaces {
		skip = 0
	}
	table := newTable(out, slices.Concat([]string{"NAMESPACE", "CHAT"}, callColumns)[skip:]...)
	for i := range chats {
		required := chats[i].Status.RequiresAction
		for j := range required.ToolCalls {
			cells := callCells(&required.ToolCalls[j], required.Deadline.Time)
			table.Row(slices.Concat([]string{chats[i].Namespace, chats[i].Name}, cells)[skip:]...)
		}
	}
	return table.Flush()
}

// DescribeCall returns the lines that show all of a call.
func DescribeCall(call *v1beta1.PendingToolCall) []string {
	lines := append([]string{fmt.Sprintf("%s (%s):", flat(call.ID), flat(call.Name))}, indented(detailOf(call))...)
	if call.Digest != "" {
		lines = append(lines, "      digest "+call.Digest)
	}
	return lines
}

// causes describes why a call requires approval that the chat does not ask for.
var causes = map[v1beta1.ApprovalCause]string{
	v1beta1.ApprovalToolChanged: "the tool has changed", v1beta1.ApprovalInputRequired: "asks for input",
	v1beta1.ApprovalReviewRequired: "proposes this", v1beta1.ApprovalPlanProposed: "proposes a plan",
	v1beta1.ApprovalPlanMode: "mode Plan",
}

// CauseOf says why a call requires approval that the chat does not ask for; empty if it does.
func CauseOf(call *v1beta1.PendingToolCall) string { return causes[call.ApprovalCause] }

// Need is what a pending call needs from a person or a client.
type Need string

// What a call may need.
const (
	NeedsNothing  Need = ""
	NeedsApproval Need = "approval"
	NeedsInput    Need = "answer"
	NeedsResult   Need = "client result"
)

// NeedOf returns what a call needs.
func NeedOf(call *v1beta1.PendingToolCall) Need {
	switch {
	case call.Kind == v1beta1.RequiresClient:
		return NeedsResult
	case call.Decision != nil:
		return NeedsNothing
	case call.ApprovalCause == v1beta1.ApprovalInputRequired:
		return NeedsInput
	}
	return NeedsApproval
}

// decisionOf describes who decided what, and when; empty for nil.
func decisionOf(d *v1beta1.ToolDecision) string {
	if d == nil {
		return ""
	}
	words := Decided[d.Decision] + optional(" by %s", d.By)
	if d.At != nil {
		words += " at " + d.At.Local().Format(time.DateTime)
	}
	return words
}

// NamesOf lists the ids of calls with their tools.
func NamesOf(calls []v1beta1.PendingToolCall) string {
	var names []string
	for i := range calls {
		names = append(names, fmt.Sprintf("%s (%s)", flat(calls[i].ID), flat(calls[i].Name)))
	}
	return strings.Join(names, ", ")
}

// Decided is the past participle of a decision.
var Decided = map[v1beta1.ApprovalDecision]string{v1beta1.DecisionApprove: "approved",
	v1beta1.DecisionDeny: "denied"}

// Hint formats command lines of this plug-in for the chat that is shown.
type Hint struct {
	Chat    string
	Command func(words ...string) string
	// Here returns how a person who sees a call approves or denies it without a command; nothing if that is not possible.
	Here func(call *v1beta1.PendingToolCall) []string
}

// lines describes each pending call and what to type. All results of a client go into one command.
func (h Hint) lines(a *stream.RequiresAction) (lines []string) {
	var results []string
	for i := range a.ToolCalls {
		call := &a.ToolCalls[i]
		command := []string{"approve", h.Chat, call.ID}
		words := "needs approval" + optional(" (%s)", CauseOf(call))
		need := NeedOf(call)
		switch need {
		case NeedsNothing:
			continue
		case NeedsResult:
			lines = append(lines, fmt.Sprintf("  %s (%s) needs a result", call.ID, call.Name))
			results = append(results, call.ID+"=JSON")
			continue
		case NeedsInput:
			command = []string{"answer", h.Chat, call.ID + "=JSON"}
			words = "asks for input:"
		}
		lines = append(lines, fmt.Sprintf("  %s (%s) %s", call.ID, call.Name, words))
		lines = append(lines, indented(detailOf(call))...)
		if here := h.here(call, need); len(here) > 0 {
			lines = append(lines, here...)
			continue
		}
		lines = append(lines, "    "+h.Command(append(command, "--digest", ShortDigest(call.Digest))...),
			"    "+h.Command("deny", h.Chat, call.ID))
	}
	if len(results) > 0 {
		lines = append(lines, "    "+h.Command(append([]string{"answer", h.Chat}, results...)...))
	}
	return lines
}

func (h Hint) here(call *v1beta1.PendingToolCall, need Need) []string {
	if h.Here == nil || need != NeedsApproval {
		return nil
	}
	return h.Here(call)
}

func indented(text []string) (lines []string) {
	for _, line := range text {
		lines = append(lines, "      | "+line)
	}
	return lines
}

const (
	// DigestPrefix begins each digest.
	DigestPrefix = "sha256:"
	// DigestDigits is the least number of its digits that identify a call.
	DigestDigits = 12
)

// ShortDigest shortens a digest to DigestDigits.
func ShortDigest(digest string) string {
	return clip.Bytes(strings.TrimPrefix(digest, DigestPrefix), DigestDigits)
}

// detailOf returns the lines that show all that a call asks for, or will do. They are text of others.
func detailOf(call *v1beta1.PendingToolCall) []string {
	switch call.ApprovalCause {
	case v1beta1.ApprovalInputRequired:
		return inputsOf(call.InputRequests)
	case v1beta1.ApprovalReviewRequired:
		return linesOf(call.Proposal)
	case v1beta1.ApprovalPlanProposed:
		return planOf(call.Input)
	}
	if call.Input == "" && call.Kind == v1beta1.RequiresClient {
		return []string{"(no arguments, or more than the status shows: then the message of the call has them)"}
	}
	return inputLines(call.Input)
}

// linesOf splits a text, without empty lines at its end.
func linesOf(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

// inputLines indents the JSON of a call's arguments, with a line break after each \n of a string.
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

// planOf returns the lines of the plan that a call proposes, unless the call has other arguments.
func planOf(input string) []string {
	var arguments map[string]string
	if err := json.Unmarshal([]byte(input), &arguments); err != nil || len(arguments) != 1 || arguments["plan"] == "" {
		return inputLines(input)
	}
	return linesOf(printable.Visible(arguments["plan"]))
}

// InputRequest is the part of a request for input of the Model Context Protocol that is shown.
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

// inputsOf describes the input that is asked for, and the fields of the answer.
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
