// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chatstate"
	"parley.dev/parley/internal/index"
	"parley.dev/parley/internal/status"
	"parley.dev/parley/internal/turn"
)

// readAction reads what calls wait for, and what people and clients have to say about them.
func (r *Reconciler) readAction(ctx context.Context, s *seen) error {
	for _, read := range []func(context.Context, *seen) error{r.readCalls, r.readResults, r.readApprovals} {
		if err := read(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// readCalls reads the calls that the chat is about to ask people for.
func (r *Reconciler) readCalls(ctx context.Context, s *seen) error {
	name := callingMessage(&s.facts)
	if name == "" {
		return nil
	}
	message, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, name)
	if err != nil || message == nil {
		return err
	}
	for i := range message.Spec.Parts {
		if call := message.Spec.Parts[i].ToolCall; call != nil && call.Awaits != "" {
			s.facts.Calls = append(s.facts.Calls, v1alpha1.PendingToolCall{
				ID: call.ID, Name: call.Name, Input: clip(call.Input, v1alpha1.MaxPendingInput), Kind: call.Awaits,
			})
		}
	}
	return nil
}

// callingMessage is the reply whose calls the chat is about to ask people for; empty if it is not.
func callingMessage(f *turn.Facts) string {
	t := f.Chat.Status.Turn
	if f.Truncated != nil {
		t = f.Truncated.Turn
	}
	switch result := f.Result; {
	case f.Truncated == nil && f.Chat.Status.Phase != v1alpha1.ChatRunning:
		return ""
	case result != nil && result.Spec.Generation != nil && result.Spec.Generation.AwaitingCalls > 0:
		return result.Name
	case t != nil && t.AwaitingCalls > 0:
		return t.CallingMessage
	}
	return ""
}

func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// readResults reads what clients answered, oldest first.
func (r *Reconciler) readResults(ctx context.Context, s *seen) error {
	var messages []*v1alpha1.ChatMessage
	for _, name := range s.results {
		message, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, name)
		if err != nil {
			return err
		}
		if message != nil && isOpen(s.facts.Chat, message) {
			messages = append(messages, message)
		}
	}
	slices.SortFunc(messages, func(a, b *v1alpha1.ChatMessage) int { return takeOrder(s.facts.Chat, a, b) })
	for _, message := range messages {
		s.facts.Results = append(s.facts.Results, examine(s.facts.Chat, message))
	}
	return nil
}

// examine compares the results with the calls that wait for a client.
func examine(chat *v1alpha1.Chat, message *v1alpha1.ChatMessage) turn.Results {
	results := turn.Results{Message: message.Name}
	wrong := func(answers chatstate.Answers, format string, args ...any) turn.Results {
		results.Answers, results.Problem = answers, fmt.Sprintf(format, args...)+": delete this message and create a right one"
		return results
	}
	waiting := map[string]bool{}
	if required := chat.Status.RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.Kind == v1alpha1.AwaitsClient {
				waiting[call.ID] = true
			}
		}
	}
	answered := map[string]bool{}
	for i := range message.Spec.Parts {
		result := message.Spec.Parts[i].ToolResult
		switch {
		case result == nil:
		case answered[result.ID]:
			return wrong(chatstate.AnswersDuplicate, "Tool call %s has two results", result.ID)
		case !waiting[result.ID]:
			return wrong(chatstate.AnswersUnexpected, "No tool call %s waits for a client", result.ID)
		case !json.Valid([]byte(result.Output)):
			return wrong(chatstate.AnswersInvalid, "The output for tool call %s is not valid JSON", result.ID)
		default:
			answered[result.ID] = true
		}
	}
	for id := range waiting {
		if !answered[id] {
			return wrong(chatstate.AnswersMissing, "Tool call %s has no result, and all must be answered in one message", id)
		}
	}
	results.Answers = chatstate.AnswersComplete
	return results
}

// readApprovals reads what people decided, oldest first.
func (r *Reconciler) readApprovals(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	var list v1alpha1.ToolApprovalList
	if err := r.Client.List(ctx, &list, client.InNamespace(chat.Namespace), client.MatchingFields{index.OpenApprovalsByChat: chat.Name}); err != nil {
		return fmt.Errorf("listing the approvals of chat %s: %w", chat.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ToolApproval) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	for i := range list.Items {
		approval := &list.Items[i]
		if recorded(chat, approval) {
			s.applied = append(s.applied, approval.Name)
			continue
		}
		s.facts.Approvals = append(s.facts.Approvals, turn.Approval{ToolDecision: v1alpha1.ToolDecision{
			ID: approval.Spec.ToolCallID, Decision: approval.Spec.Decision, Approval: approval.Name, Comment: approval.Spec.Comment,
		}})
	}
	return nil
}

// recorded tells whether the chat says already that the decision counts.
func recorded(chat *v1alpha1.Chat, approval *v1alpha1.ToolApproval) bool {
	if required := chat.Status.RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.Decision != nil && call.Decision.Approval == approval.Name {
				return true
			}
		}
	}
	t := chat.Status.Turn
	return t != nil && slices.ContainsFunc(t.Decisions, func(d v1alpha1.ToolDecision) bool { return d.Approval == approval.Name })
}

// settleApprovals says what became of decisions.
func (r *Reconciler) settleApprovals(ctx context.Context, s *seen, names []string, applied bool) error {
	for _, name := range names {
		var approval v1alpha1.ToolApproval
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.facts.Chat.Namespace, Name: name}, &approval)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading approval %s: %w", name, err)
		}
		status.Approval(&approval, applied, s.facts.Now)
		if err := r.Client.Status().Update(ctx, &approval); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("writing the status of approval %s: %w", name, err)
		}
	}
	return nil
}

// recordResults sees to it that a message with a client's results knows its place in the history before the chat's status
// stops saying it.
func (r *Reconciler) recordResults(ctx context.Context, s *seen, plan *turn.Plan) error {
	chat := s.facts.Chat
	if chat.Status.Turn == nil || chat.Status.Turn.Results == nil {
		return nil
	}
	place := chat.Status.Turn.Results
	if next := plan.Status.Turn; next != nil && next.Results != nil && next.Results.Message == place.Message {
		return nil
	}
	message, err := r.message(ctx, r.Live, chat.Namespace, place.Message)
	if err != nil || message == nil || message.Status.State == v1alpha1.MessageCommitted {
		return err
	}
	summary := status.CommitResults(&message.Status, string(chat.UID), place)
	status.Message(&message.Status, summary, message.Generation, s.facts.Now)
	if err := r.Client.Status().Update(ctx, message); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("recording the place of message %s: %w", place.Message, err)
	}
	return nil
}
