// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/compose"
)

func newApprove(o *options) *cobra.Command {
	return newDecide(o, v1alpha1.DecisionApprove, &cobra.Command{
		Use:   "approve CHAT [CALL]",
		Short: "Let a tool call run that waits for approval",
		Long: "Shows the call and asks whether to approve it. The beginning or the end of the call's id is enough, and no " +
			"id is needed where a single call waits. With --digest it does not ask: the digest, or its first " +
			"12 digits, stands below the call in the output of calls, and proves that you have seen this call. Then it " +
			"creates a ToolApproval, and waits until it applies. Once all calls that wait are decided and answered, the turn " +
			"continues.",
		Example: "  kubectl chat approve triage call_1\n  kubectl chat approve triage call_1 --digest 1f3a9c0b7d42 " +
			"--comment 'agreed with the network team'",
	})
}

func newDeny(o *options) *cobra.Command {
	return newDecide(o, v1alpha1.DecisionDeny, &cobra.Command{
		Use:   "deny CHAT [CALL]",
		Short: "Keep a tool call from running that waits for approval",
		Long: "Creates a ToolApproval that denies the call, and waits until it applies. The beginning or the end of the " +
			"call's id is enough, and no id is needed where a single call waits. The model reads the comment, " +
			"and the turn continues once all calls that wait are decided and answered.",
		Example: "  kubectl chat deny triage call_1 --comment 'not during the freeze'",
	})
}

func newDecide(o *options, decision v1alpha1.ApprovalDecision, cmd *cobra.Command) *cobra.Command {
	var w waiting
	comment, digest := "", ""
	cmd.Args = cobra.RangeArgs(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := o.connect(render.FormatName, render.FormatJSON, render.FormatYAML)
		if err != nil {
			return err
		}
		call, err := undecidedCall(cmd.Context(), s, args[0], strings.Join(args[1:], ""))
		if err != nil {
			return err
		}
		if decision == v1alpha1.DecisionApprove {
			question := fmt.Sprintf("Approve call %s of chat %s?", call.ID, args[0])
			if err := reviewCall(s, args[0], call, digest, question); err != nil {
				return err
			}
		}
		return decideCall(cmd.Context(), s, args[0], call, v1alpha1.ToolApprovalSpec{Decision: decision, Comment: comment}, w)
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&comment, "comment", "", "why; the model reads it when the call is denied")
	if decision == v1alpha1.DecisionApprove {
		cmd.Flags().StringVar(&digest, "digest", "", "the digest of the call that you have seen, or its first 12 digits")
	}
	return cmd
}

// reviewCall makes sure that a person has seen the call: by the digest, or by showing it now and asking the question.
func reviewCall(s *session, chat string, call *v1alpha1.PendingToolCall, digest, question string) error {
	switch given := strings.TrimPrefix(digest, render.DigestPrefix); {
	case call.CallDigest() != call.Digest:
		return fmt.Errorf("the status of chat %s has a digest of call %s that does not fit the call: upgrade the operator "+
			"and this plug-in to the same version", chat, call.ID)
	case digest == "" && !terminal.OnTerminal(s.In):
		return fmt.Errorf("--digest is required without a terminal: read call %s with %s, which also prints its "+
			"digest", call.ID, s.command("calls", chat))
	case digest == "":
		fmt.Fprintln(s.ErrOut, strings.Join(render.DescribeCall(call), "\n"))
		if !terminal.Agreed(s.In, s.ErrOut, "%s", question) {
			return errors.New("nothing was decided")
		}
	case len(given) < render.DigestDigits ||
		!strings.HasPrefix(strings.TrimPrefix(call.Digest, render.DigestPrefix), given):
		return fmt.Errorf("call %s has digest %s, not %s: read it again with %s", call.ID, call.Digest, digest,
			s.command("calls", chat))
	}
	return nil
}

// decideCall creates a decision about a call, and waits until it applies.
func decideCall(ctx context.Context, s *session, chat string, call *v1alpha1.PendingToolCall,
	spec v1alpha1.ToolApprovalSpec, w waiting) error {
	spec.ToolCallID = call.ID
	if spec.Decision == v1alpha1.DecisionApprove {
		spec.Digest = call.Digest
	}
	approval, err := s.Approvals().Create(ctx, compose.Decision(s.Namespace, chat, "", spec))
	if err != nil {
		return fmt.Errorf("creating the ToolApproval: %w", err)
	}
	if !w.wait {
		return s.Say(render.ApprovalPrefix+approval.Name, approval, " created")
	}
	approval, err = settle(ctx, w, "ToolApproval "+approval.Name+" to be applied", s.Approvals().Watch, approval.Name,
		func(now *v1alpha1.ToolApproval, note func(string)) (bool, error) {
			return cluster.IsReady(now.Status.Conditions, note)
		})
	if err != nil {
		return err
	}
	err = s.Say(render.ApprovalPrefix+approval.Name, approval, " %s %s (%s): %s", render.Decided[spec.Decision], call.ID,
		call.Name, v1alpha1.ReasonApplied)
	if chat, failed := s.Chats().Get(ctx, chat); failed == nil && chat.Status.Wait != nil { // It tells what comes next.
		terminal.NewScreen(s.ErrOut).Line("[%s: %s]", chat.Status.Wait.Reason, chat.Status.Wait.Message)
	}
	return err
}

// undecidedCall finds a call that waits for approval, or says what waits instead. Without an id it is the only one.
func undecidedCall(ctx context.Context, s *session, chat, id string) (*v1alpha1.PendingToolCall, error) {
	calls, err := pendingCalls(ctx, s, chat, v1alpha1.RequiresApproval)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return onlyUndecided(chat, calls)
	}
	call, err := findCall(calls, id)
	if err != nil {
		return nil, err
	}
	if call == nil {
		return nil, fmt.Errorf("chat %s has no call %s that waits for approval: there is %s", chat, id, render.NamesOf(calls))
	}
	if d := call.Decision; d != nil {
		return nil, fmt.Errorf("call %s was %s by ToolApproval %s already", call.ID, render.Decided[d.Decision], d.Approval)
	}
	return call, nil
}

// onlyUndecided is the only call that no one has decided about.
func onlyUndecided(chat string, calls []v1alpha1.PendingToolCall) (*v1alpha1.PendingToolCall, error) {
	open := slices.DeleteFunc(slices.Clone(calls), func(c v1alpha1.PendingToolCall) bool { return c.Decision != nil })
	switch len(open) {
	case 0:
		return nil, fmt.Errorf("every call of chat %s that requires approval is decided: %s", chat, render.NamesOf(calls))
	case 1:
		return &open[0], nil
	}
	return nil, usageError{fmt.Errorf("chat %s has %d calls that wait for approval: name one of %s", chat, len(open),
		render.NamesOf(open))}
}
