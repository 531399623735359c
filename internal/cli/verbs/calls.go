// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/render"
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
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return listCalls(ctx, s, args[0])
		}, render.FormatJSON, render.FormatYAML),
	}
}

func listCalls(ctx context.Context, s *session, name string) error {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return err
	}
	required := chat.Status.RequiresAction
	if required == nil {
		fmt.Fprintf(s.ErrOut, "No tool call of chat %s waits: it is %s.\n", name, chat.Status.Phase)
		return nil
	}
	if s.Format != "" {
		return s.Print(required)
	}
	return render.PrintCalls(s.Out, required)
}

// pendingCalls finds the calls of a kind that wait, and fails if the chat waits for none.
func pendingCalls(ctx context.Context, s *session, name string, kind v1alpha1.RequiredAction,
) ([]v1alpha1.PendingToolCall, error) {
	chat, err := s.Chat(ctx, name)
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
			s.command("calls", name))
	}
	return calls, nil
}

// brought is what calls of a kind wait for.
var brought = map[v1alpha1.RequiredAction]string{v1alpha1.RequiresApproval: "approval",
	v1alpha1.RequiresClient: "a client's result"}
