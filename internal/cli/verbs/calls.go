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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/compose"
)

func newCalls(o *options) *cobra.Command {
	allNamespaces := false
	cmd := &cobra.Command{
		Use:   "calls [CHAT]",
		Short: "List the tool calls that wait for a person or a client",
		Long: "Lists the tool calls that a chat waits for, each with its complete input and its digest; invisible " +
			"characters are escaped. Calls of kind Approval wait for approve or deny, those of kind Client for answer. After " +
			"the deadline all are cancelled. -o json prints status.requiresAction.\n\nWithout a CHAT it lists the calls of " +
			"all chats of the namespace, without their inputs. -o json then prints the chats that wait.",
		Example: "  kubectl chat calls\n  kubectl chat calls triage -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			if len(args) == 0 {
				return listAllCalls(ctx, s, allNamespaces)
			}
			if allNamespaces {
				return usageError{errors.New("--all-namespaces lists the calls of all chats: give no CHAT")}
			}
			return listCalls(ctx, s, args[0])
		}, render.FormatJSON, render.FormatYAML),
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "list the calls of the chats of all namespaces")
	return cmd
}

func listCalls(ctx context.Context, s *session, name string) error {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return err
	}
	required := chat.Status.RequiresAction
	if required == nil {
		fmt.Fprintf(s.ErrOut, "No tool call of chat %s waits: it is %s.\n", name, stateOf(chat))
		return nil
	}
	if s.Format != "" {
		return s.Print(required)
	}
	return render.PrintCalls(s.Out, required)
}

func listAllCalls(ctx context.Context, s *session, allNamespaces bool) error {
	where := "in namespace " + s.Namespace
	if allNamespaces {
		s.Namespace, where = "", "in any namespace"
	}
	waiting := &v1beta1.ChatList{}
	err := cluster.Each(ctx, cluster.InPages(), s.Chats().List, func(c *v1beta1.Chat) {
		if c.Status.RequiresAction != nil {
			waiting.Items = append(waiting.Items, *c)
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("listing the chats: %w", err)
	case s.Format != "":
		return s.Print(waiting)
	case len(waiting.Items) == 0:
		fmt.Fprintf(s.ErrOut, "No tool call waits %s.\n", where)
		return nil
	}
	return render.PrintWaiting(s.Out, waiting.Items, allNamespaces)
}

// pendingCalls finds the calls of a kind that a chat waits for, and fails if there are none.
func pendingCalls(ctx context.Context, s *session, name string, kind v1beta1.RequiredAction,
) ([]v1beta1.PendingToolCall, error) {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return nil, err
	}
	var calls []v1beta1.PendingToolCall
	if required := chat.Status.RequiresAction; required != nil {
		calls = slices.DeleteFunc(required.ToolCalls, func(c v1beta1.PendingToolCall) bool { return c.Kind != kind })
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("no call of chat %s waits for %s: it is %s; see %s", name, requirements[kind],
			stateOf(chat), s.command("calls", name))
	}
	return calls, nil
}

// requirements is what calls of a kind wait for.
var requirements = map[v1beta1.RequiredAction]string{v1beta1.RequiresApproval: "approval",
	v1beta1.RequiresClient: "a client's result"}

func newApprove(o *options) *cobra.Command {
	return newDecide(o, v1beta1.DecisionApprove, &cobra.Command{
		Use:   "approve CHAT [CALL]",
		Short: "Let a call run that waits for approval",
		Long: "Shows the call and asks for confirmation. With --digest it does not ask: the digest, or its first 12 " +
			"digits, is in the output of calls and proves that you have seen this call. A script needs it. Then it creates a " +
			"ToolApproval, and waits until it applies. The turn continues once all waiting calls are decided and " +
			"answered.\n\nThe beginning or the end of the call's id is enough. Without a CALL it decides about the only " +
			"waiting call; if several wait, it lists them and ends with code 2. A decision is final.",
		Example: "  kubectl chat approve triage call_1\n  kubectl chat approve triage call_1 --digest 1f3a9c0b7d42 " +
			"--comment 'agreed with the network team'",
	})
}

func newDeny(o *options) *cobra.Command {
	return newDecide(o, v1beta1.DecisionDeny, &cobra.Command{
		Use:   "deny CHAT [CALL]",
		Short: "Refuse a call that waits for approval",
		Long: "Creates a ToolApproval that denies the call, and waits until it applies. The model reads the comment. The " +
			"turn continues once all waiting calls are decided and answered. CALL is as for approve.",
		Example: "  kubectl chat deny triage\n  kubectl chat deny triage call_1 --comment 'not during the freeze'",
	})
}

func newDecide(o *options, decision v1beta1.ApprovalDecision, cmd *cobra.Command) *cobra.Command {
	comment, digest := "", ""
	cmd.Args = cobra.RangeArgs(1, 2)
	cmd.Flags().StringVar(&comment, "comment", "", "why; the model reads it when the call is denied")
	if decision == v1beta1.DecisionApprove {
		cmd.Flags().StringVar(&digest, "digest", "", "the digest of the call that you have seen, or its first 12 digits")
	}
	return newAwaited(o, cmd, func(ctx context.Context, s *session, args []string, w waiting) error {
		chat := args[0]
		call, err := undecidedCall(ctx, s, chat, strings.Join(args[1:], ""))
		if err != nil {
			return err
		}
		if decision == v1beta1.DecisionApprove {
			question := fmt.Sprintf("Approve call %s of chat %s?", call.ID, chat)
			if err := reviewCall(s, chat, call, digest, question); err != nil {
				return err
			}
		}
		return decideCall(ctx, s, chat, call, v1beta1.ToolApprovalSpec{Decision: decision, Comment: comment}, w)
	})
}

// reviewCall checks that a person has seen the call: by the digest, or by showing it now and asking the question.
func reviewCall(s *session, chat string, call *v1beta1.PendingToolCall, digest, question string) error {
	switch digits := strings.TrimPrefix(digest, render.DigestPrefix); {
	case call.CallDigest() != call.Digest:
		return fmt.Errorf("the status of chat %s has a digest of call %s that does not fit the call: upgrade the operator "+
			"and this plug-in to the same version", chat, call.ID)
	case digest == "" && !terminal.OnTerminal(s.In):
		return usageError{fmt.Errorf("--digest is required without a terminal: read call %s with %s, which also prints its "+
			"digest", call.ID, s.command("calls", chat))}
	case digest == "":
		fmt.Fprintln(s.ErrOut, strings.Join(render.DescribeCall(call), "\n"))
		switch agreed, err := terminal.Agreed(s.In, s.ErrOut, "%s", question); {
		case err != nil:
			return err
		case !agreed:
			return usageError{errors.New("nothing was decided")}
		}
	case len(digits) < render.DigestDigits || !strings.HasPrefix(call.Digest, render.DigestPrefix+digits):
		return fmt.Errorf("call %s has digest %s, not %s: read it again with %s", call.ID, call.Digest, digest,
			s.command("calls", chat))
	}
	return nil
}

// decideCall creates a decision about a call, and waits until it applies.
func decideCall(ctx context.Context, s *session, chat string, call *v1beta1.PendingToolCall,
	spec v1beta1.ToolApprovalSpec, w waiting) error {
	spec.ToolCallID = call.ID
	if spec.Decision == v1beta1.DecisionApprove {
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
		func(now *v1beta1.ToolApproval, note func(string)) (bool, error) {
			return cluster.IsReady(now.Status.Conditions, note)
		})
	if err != nil {
		return err
	}
	err = s.Say(render.ApprovalPrefix+approval.Name, approval, " %s %s (%s): %s", render.Decided[spec.Decision], call.ID,
		call.Name, v1beta1.ReasonApplied)
	if chat, failed := s.Chats().Get(ctx, chat); failed == nil && chat.Status.Wait != nil { // It is what comes next.
		terminal.NewScreen(s.ErrOut).Line("[%s: %s]", chat.Status.Wait.Reason, chat.Status.Wait.Message)
	}
	return err
}

// undecidedCall finds a call that waits for approval. Without an id it is the only one.
func undecidedCall(ctx context.Context, s *session, chat, id string) (*v1beta1.PendingToolCall, error) {
	calls, err := pendingCalls(ctx, s, chat, v1beta1.RequiresApproval)
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

// onlyUndecided returns the only call that has no decision.
func onlyUndecided(chat string, calls []v1beta1.PendingToolCall) (*v1beta1.PendingToolCall, error) {
	open := slices.DeleteFunc(slices.Clone(calls), func(c v1beta1.PendingToolCall) bool { return c.Decision != nil })
	switch len(open) {
	case 0:
		return nil, fmt.Errorf("every call of chat %s that requires approval is decided: %s", chat, render.NamesOf(calls))
	case 1:
		return &open[0], nil
	}
	return nil, usageError{fmt.Errorf("chat %s has %d calls that wait for approval: name one of %s", chat, len(open),
		render.NamesOf(open))}
}
