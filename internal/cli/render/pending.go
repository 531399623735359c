// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
)

// PrintCalls lists calls that wait, and shows all that each will do.
func PrintCalls(out io.Writer, required *v1alpha1.RequiresActionStatus) error {
	table := newTable(out, "ID", "TOOL", "KIND", "DECISION", "DEADLINE")
	left := duration.HumanDuration(max(0, time.Until(required.Deadline.Time)))
	for i := range required.ToolCalls {
		call := &required.ToolCalls[i]
		table.Row(flat(call.ID), flat(call.Name), kindOf(call), decisionOf(call), left)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range required.ToolCalls {
		fmt.Fprintf(out, "\n%s\n", strings.Join(DescribeCall(&required.ToolCalls[i]), "\n"))
	}
	return nil
}

// DescribeCall are the lines that show all of a call.
func DescribeCall(call *v1alpha1.PendingToolCall) []string {
	lines := append([]string{fmt.Sprintf("%s (%s):", flat(call.ID), flat(call.Name))}, indented(detailOf(call))...)
	if call.Digest != "" {
		lines = append(lines, "      digest "+call.Digest)
	}
	return lines
}

// causes say why a call requires approval that nobody asked for.
var causes = map[v1alpha1.ApprovalCause]string{
	v1alpha1.ApprovalToolChanged: "the tool has changed", v1alpha1.ApprovalInputRequired: "asks for input",
	v1alpha1.ApprovalReviewRequired: "proposes this", v1alpha1.ApprovalPlanProposed: "proposes a plan",
	v1alpha1.ApprovalPlanMode: "mode Plan",
}

// kindOf is the kind of the call, and why it requires approval if nobody asked for that.
func kindOf(call *v1alpha1.PendingToolCall) string {
	if why := causes[call.ApprovalCause]; why != "" {
		return string(call.Kind) + " (" + why + ")"
	}
	return string(call.Kind)
}

// Need is what a call waits for that somebody has to bring.
type Need string

// What a call may need.
const (
	NeedsNothing  Need = ""
	NeedsApproval Need = "approval"
	NeedsInput    Need = "answer"
	NeedsResult   Need = "client result"
)

// NeedOf is what a call waits for.
func NeedOf(call *v1alpha1.PendingToolCall) Need {
	switch {
	case call.Kind == v1alpha1.RequiresClient:
		return NeedsResult
	case call.Decision != nil:
		return NeedsNothing
	case call.ApprovalCause == v1alpha1.ApprovalInputRequired:
		return NeedsInput
	}
	return NeedsApproval
}

func decisionOf(call *v1alpha1.PendingToolCall) string {
	if call.Decision == nil {
		return "<none>"
	}
	return decisionWords(call.Decision)
}

// decisionWords say who decided what, and when.
func decisionWords(d *v1alpha1.ToolDecision) string {
	words := Decided[d.Decision]
	if d.By != "" {
		words += " by " + flat(d.By)
	}
	if d.At != nil {
		words += " at " + d.At.Local().Format(time.DateTime)
	}
	return words
}

// NamesOf are the ids of calls with their tools.
func NamesOf(calls []v1alpha1.PendingToolCall) string {
	names := make([]string, 0, len(calls))
	for i := range calls {
		names = append(names, fmt.Sprintf("%s (%s)", flat(calls[i].ID), flat(calls[i].Name)))
	}
	return strings.Join(names, ", ")
}

// Decided is what a decision did to a call.
var Decided = map[v1alpha1.ApprovalDecision]string{v1alpha1.DecisionApprove: "approved",
	v1alpha1.DecisionDeny: "denied"}

// Hint knows how a person types a verb of this plug-in for the chat that is shown.
type Hint struct {
	Chat    string
	Command func(words ...string) string
}

// lines say for each call that waits what to type. All results of a client go into one command.
func (h Hint) lines(a *stream.RequiresAction) (lines []string) {
	var results []string
	for i := range a.ToolCalls {
		call := &a.ToolCalls[i]
		switch NeedOf(call) {
		case NeedsResult:
			lines = append(lines, fmt.Sprintf("  %s (%s) needs a result", call.ID, call.Name))
			results = append(results, call.ID+"=JSON")
		case NeedsInput:
			lines = append(lines, fmt.Sprintf("  %s (%s) asks for input:", call.ID, call.Name))
			lines = append(lines, indented(detailOf(call))...)
			lines = append(lines, "    "+h.Command("answer", h.Chat, call.ID+"=JSON", "--digest",
				ShortDigest(call.Digest)), "    "+h.Command("deny", h.Chat, call.ID))
		case NeedsApproval:
			lines = append(lines, fmt.Sprintf("  %s (%s) needs approval", call.ID, call.Name))
			lines = append(lines, indented(detailOf(call))...)
			lines = append(lines, "    "+h.Command("approve", h.Chat, call.ID, "--digest", ShortDigest(call.Digest)),
				"    "+h.Command("deny", h.Chat, call.ID))
		}
	}
	if len(results) > 0 {
		lines = append(lines, "    "+h.Command(append([]string{"answer", h.Chat}, results...)...))
	}
	return lines
}

// indented are lines that others say, within those of the plug-in.
func indented(said []string) (lines []string) {
	for _, line := range said {
		lines = append(lines, "      | "+line)
	}
	return lines
}

const (
	// DigestPrefix begins each digest.
	DigestPrefix = "sha256:"
	// DigestDigits is how many of its digits name a call at least.
	DigestDigits = 12
)

// ShortDigest is enough of a digest to name a call.
func ShortDigest(digest string) string {
	return clip.Bytes(strings.TrimPrefix(digest, DigestPrefix), DigestDigits)
}
