// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/compose"
)

// decided is what a decision did to a call.
var decided = map[v1alpha1.ApprovalDecision]string{v1alpha1.DecisionApprove: "approved",
	v1alpha1.DecisionDeny: "denied"}

func newApprove(o *options) *cobra.Command {
	return newDecide(o, v1alpha1.DecisionApprove, &cobra.Command{
		Use:   "approve CHAT CALL",
		Short: "Let a tool call run that waits for approval",
		Long: "Creates a ToolApproval that approves the call, and waits until it counts. Once all calls that wait are " +
			"decided and answered, the turn continues.",
		Example: "  kubectl chat approve triage call_1\n  kubectl chat approve triage call_1 --comment 'agreed with the " +
			"network team'",
	})
}

func newDeny(o *options) *cobra.Command {
	return newDecide(o, v1alpha1.DecisionDeny, &cobra.Command{
		Use:   "deny CHAT CALL",
		Short: "Keep a tool call from running that waits for approval",
		Long: "Creates a ToolApproval that denies the call, and waits until it counts. The model reads the comment, " +
			"and the turn continues once all calls that wait are decided and answered.",
		Example: "  kubectl chat deny triage call_1 --comment 'not during the freeze'",
	})
}

func newDecide(o *options, decision v1alpha1.ApprovalDecision, cmd *cobra.Command) *cobra.Command {
	var w waiting
	comment := ""
	cmd.Args = cobra.ExactArgs(2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := o.connect(outName, outJSON, outYAML)
		if err != nil {
			return err
		}
		return s.decide(cmd.Context(), args[0], v1alpha1.ToolApprovalSpec{
			ChatRef: v1alpha1.ChatReference{Name: args[0]}, ToolCallID: args[1], Decision: decision, Comment: comment,
		}, w)
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&comment, "comment", "", "why; the model reads it when the call is denied")
	return cmd
}

func (s *session) decide(ctx context.Context, chat string, spec v1alpha1.ToolApprovalSpec, w waiting) error {
	call, err := s.undecided(ctx, chat, spec.ToolCallID)
	if err != nil {
		return err
	}
	approval, err := s.objects.createApproval(ctx, compose.Decision(s.objects.namespace, chat, "", spec))
	if err != nil {
		return err
	}
	if !w.wait {
		return s.options.say(approvalNamed+approval.Name, approval, " created")
	}
	err = w.until(ctx, "ToolApproval "+approval.Name+" to be applied", func(ctx context.Context, note func(string)) error {
		return await(ctx, s.objects.approvals().Watch, approval.Name, func(now *v1alpha1.ToolApproval) (bool, error) {
			approval = now
			return verdict(now.Status.Conditions, note)
		})
	})
	if err != nil {
		return err
	}
	return s.options.say(approvalNamed+approval.Name, approval, " %s %s (%s): %s", decided[spec.Decision], call.ID,
		call.Name,
		v1alpha1.ReasonApplied)
}

// undecided finds a call that waits for approval, or says what waits instead.
func (s *session) undecided(ctx context.Context, chat, id string) (*v1alpha1.PendingToolCall, error) {
	calls, err := s.pending(ctx, chat, v1alpha1.RequiresApproval)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(calls, func(c v1alpha1.PendingToolCall) bool { return c.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("chat %s has no call %s that waits for approval: there is %s", chat, id, namesOf(calls))
	}
	if d := calls[i].Decision; d != nil {
		return nil, fmt.Errorf("call %s was %s by ToolApproval %s already", id, decided[d.Decision], d.Approval)
	}
	return &calls[i], nil
}
