// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"parley.dev/parley/api/v1alpha1"
)

func newCalls(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "calls CHAT",
		Short: "List the tool calls of a chat that wait for a person or a client",
		Long: "Lists the tool calls that a chat waits for, each with all that it will do. A call of kind Approval is " +
			"decided with approve or deny, those of kind Client are answered with answer. After the deadline they are " +
			"cancelled.",
		Example: "  kubectl chat calls triage\n  kubectl chat calls triage -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.connect(outJSON, outYAML)
			if err != nil {
				return err
			}
			return s.calls(cmd.Context(), args[0])
		},
	}
}

func (s *session) calls(ctx context.Context, name string) error {
	chat, err := s.objects.chat(ctx, name)
	if err != nil {
		return err
	}
	required := chat.Status.RequiresAction
	if required == nil {
		fmt.Fprintf(s.options.ErrOut, "No tool call of chat %s waits: it is %s.\n", name, chat.Status.Phase)
		return nil
	}
	if s.options.output != "" {
		return s.options.print(required)
	}
	table := printers.GetNewTabWriter(s.options.Out)
	fmt.Fprintln(table, "ID\tTOOL\tKIND\tDECISION\tDEADLINE")
	left := duration.HumanDuration(max(0, time.Until(required.Deadline.Time)))
	for i := range required.ToolCalls {
		call := &required.ToolCalls[i]
		fmt.Fprintln(table,
			strings.Join([]string{flat(call.ID), flat(call.Name), kindOf(call), decisionOf(call), left}, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for i := range required.ToolCalls {
		fmt.Fprintf(s.options.Out, "\n%s\n", strings.Join(described(&required.ToolCalls[i]), "\n"))
	}
	return nil
}

// described are the lines that show all of a call.
func described(call *v1alpha1.PendingToolCall) []string {
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

// wanted is what a call waits for that somebody has to bring.
type wanted string

const (
	forNothing  wanted = ""
	forApproval wanted = "approval"
	forInput    wanted = "answer"
	forClient   wanted = "client result"
)

// waitsFor is what a call waits for.
func waitsFor(call *v1alpha1.PendingToolCall) wanted {
	switch {
	case call.Kind == v1alpha1.RequiresClient:
		return forClient
	case call.Decision != nil:
		return forNothing
	case call.ApprovalCause == v1alpha1.ApprovalInputRequired:
		return forInput
	}
	return forApproval
}

func decisionOf(call *v1alpha1.PendingToolCall) string {
	if call.Decision == nil {
		return "<none>"
	}
	return decisionWords(call.Decision)
}

// decisionWords say who decided what, and when.
func decisionWords(d *v1alpha1.ToolDecision) string {
	words := decided[d.Decision]
	if d.By != "" {
		words += " by " + flat(d.By)
	}
	if d.At != nil {
		words += " at " + d.At.Local().Format(time.DateTime)
	}
	return words
}

// pending finds the calls of a kind that wait, and fails if the chat waits for none.
func (s *session) pending(ctx context.Context, name string, kind v1alpha1.RequiredAction) ([]v1alpha1.PendingToolCall,
	error) {
	chat, err := s.objects.chat(ctx, name)
	if err != nil {
		return nil, err
	}
	var calls []v1alpha1.PendingToolCall
	if required := chat.Status.RequiresAction; required != nil {
		for i := range required.ToolCalls {
			if required.ToolCalls[i].Kind == kind {
				calls = append(calls, required.ToolCalls[i])
			}
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("no call of chat %s waits for %s: it is %s; see %s", name, brought[kind], chat.Status.Phase,
			s.options.command("calls", name))
	}
	return calls, nil
}

// brought is what calls of a kind wait for.
var brought = map[v1alpha1.RequiredAction]string{v1alpha1.RequiresApproval: "approval",
	v1alpha1.RequiresClient: "a client's result"}

func namesOf(calls []v1alpha1.PendingToolCall) string {
	names := make([]string, 0, len(calls))
	for i := range calls {
		names = append(names, fmt.Sprintf("%s (%s)", flat(calls[i].ID), flat(calls[i].Name)))
	}
	return strings.Join(names, ", ")
}
