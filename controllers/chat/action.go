// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/clip"
	"parley.dev/parley/internal/index"
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
		if call := message.Spec.Parts[i].ToolCall; call != nil && stillAwaited(&s.facts, message, call) {
			s.facts.Calls = append(s.facts.Calls, v1alpha1.PendingToolCall{
				ID: call.ID, Name: call.Name, Input: clip.Bytes(call.Input, v1alpha1.MaxPendingInput), Kind: call.Awaits,
			})
		}
	}
	return nil
}

// callingMessage is the reply whose calls the chat is about to ask people for; empty if it is not.
func callingMessage(f *plan.Facts) string {
	t := f.Chat.Status.Turn
	if f.Truncated != nil {
		t = f.Truncated.Turn
	}
	switch result := f.Result; {
	case f.Truncated != nil: // What the attempt yielded was said in a conversation that is no more.
	case f.Chat.Status.Phase != v1alpha1.ChatRunning:
		return ""
	case result != nil && result.Spec.Generation != nil && result.Spec.Generation.AwaitingCalls > 0:
		return result.Name
	}
	if t != nil && t.AwaitingCalls > 0 {
		return t.CallingMessage
	}
	return ""
}

// stillAwaited reports whether the call waits for somebody. A client's results come all at once, behind the calls.
func stillAwaited(f *plan.Facts, message *v1alpha1.ChatMessage, call *v1alpha1.ToolCall) bool {
	t := f.Chat.Status.Turn
	if f.Truncated != nil {
		t = f.Truncated.Turn
	}
	place := resultsOf(t)
	answered := place != nil && message.Spec.Index != nil && place.Index > *message.Spec.Index
	return call.Awaits == v1alpha1.AwaitsApproval || call.Awaits == v1alpha1.AwaitsClient && !answered
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
func examine(chat *v1alpha1.Chat, message *v1alpha1.ChatMessage) plan.Results {
	waiting, answered := waitingForClient(chat), map[string]bool{}
	for i := range message.Spec.Parts {
		if result := message.Spec.Parts[i].ToolResult; result != nil {
			if problem := examineOne(result, waiting, answered); problem != "" {
				return wrong(message, problem)
			}
			answered[result.ID] = true
		}
	}
	for id := range waiting {
		if !answered[id] {
			return wrong(message, "Tool call "+id+" has no result, and all must be answered in one message")
		}
	}
	return plan.Results{Message: message.Name, StoppedBy: stoppedBy(chat, message)}
}

// stoppedBy is the tool of the first call, in their order, whose result ends the turn; empty if none does. The results name no
// tools that could be relied on.
func stoppedBy(chat *v1alpha1.Chat, message *v1alpha1.ChatMessage) string {
	failed := map[string]bool{}
	for i := range message.Spec.Parts {
		if result := message.Spec.Parts[i].ToolResult; result != nil {
			failed[result.ID] = result.IsError
		}
	}
	var inOrder []v1alpha1.ToolResult
	if required := chat.Status.RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if isError, answered := failed[call.ID]; answered {
				inOrder = append(inOrder, v1alpha1.ToolResult{ID: call.ID, Name: call.Name, IsError: isError})
			}
		}
	}
	return chat.Spec.Tools.StoppedBy(inOrder)
}

func wrong(message *v1alpha1.ChatMessage, problem string) plan.Results {
	return plan.Results{Message: message.Name, Problem: problem + ": delete this message and create a right one"}
}

func waitingForClient(chat *v1alpha1.Chat) map[string]bool {
	waiting := map[string]bool{}
	if required := chat.Status.RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.Kind == v1alpha1.AwaitsClient {
				waiting[call.ID] = true
			}
		}
	}
	return waiting
}

// examineOne says what is wrong with a result; empty for a right one.
func examineOne(result *v1alpha1.ToolResult, waiting, answered map[string]bool) (problem string) {
	switch {
	case answered[result.ID]:
		return "Tool call " + result.ID + " has two results"
	case !waiting[result.ID]:
		return "No tool call " + result.ID + " waits for a client"
	case !json.Valid([]byte(result.Output)):
		return "The output for tool call " + result.ID + " is not valid JSON"
	}
	return ""
}

// readApprovals reads what people decided, oldest first.
func (r *Reconciler) readApprovals(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	var list v1alpha1.ToolApprovalList
	if err := r.Client.List(ctx, &list, client.InNamespace(chat.Namespace), client.MatchingFields{index.OpenApprovalsByChat: chat.Name}); err != nil {
		return fmt.Errorf("listing the approvals of chat %s: %w", chat.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ToolApproval) int { // Nobody has written to an open one.
		return byCreation(&a, &b, a.ResourceVersion, b.ResourceVersion)
	})
	for i := range list.Items {
		approval := &list.Items[i]
		if recorded(chat, approval) {
			s.applied = append(s.applied, approval.Name)
			continue
		}
		s.facts.Approvals = append(s.facts.Approvals, plan.Approval{ToolDecision: v1alpha1.ToolDecision{
			ID: approval.Spec.ToolCallID, Decision: approval.Spec.Decision, Approval: approval.Name, Comment: approval.Spec.Comment,
		}})
	}
	return nil
}

// refuseApprovals says of decisions about calls of a chat that does not exist that they came to nothing.
func (r *Reconciler) refuseApprovals(ctx context.Context, key types.NamespacedName) error {
	var open v1alpha1.ToolApprovalList
	if err := r.Client.List(ctx, &open, client.InNamespace(key.Namespace), client.MatchingFields{index.OpenApprovalsByChat: key.Name}); err != nil {
		return fmt.Errorf("listing the approvals of chat %s: %w", key, err)
	}
	chat := v1alpha1.Chat{}
	if len(open.Items) == 0 || !apierrors.IsNotFound(r.Live.Get(ctx, key, &chat)) {
		return nil // The cache shows the chat soon.
	}
	chat.Namespace = key.Namespace
	for i := range open.Items {
		if err := r.settleApprovals(ctx, &seen{facts: plan.Facts{Chat: &chat, Now: r.Now()}}, []string{open.Items[i].Name}, false); err != nil {
			return err
		}
	}
	return nil
}

// recorded reports whether the chat says already that the decision counts.
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
		conditions.Approval(&approval, applied, s.facts.Now)
		if err := r.Client.Status().Update(ctx, &approval); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("writing the status of approval %s: %w", name, err)
		}
	}
	return nil
}

// recordResults sees to it that a message with a client's results knows its place in the history before the chat's status
// stops saying it.
func (r *Reconciler) recordResults(ctx context.Context, s *seen, todo *plan.Plan) error {
	places := []*v1alpha1.MessagePlace{resultsOf(s.facts.Chat.Status.Turn)}
	for _, ended := range todo.Replaced {
		places = append(places, resultsOf(ended))
	}
	for _, place := range places {
		next := resultsOf(todo.Status.Turn)
		if place == nil || next != nil && next.Message == place.Message {
			continue
		}
		if err := r.recordPlace(ctx, s, place); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) recordPlace(ctx context.Context, s *seen, place *v1alpha1.MessagePlace) error {
	chat := s.facts.Chat
	message, err := r.message(ctx, r.Live, chat.Namespace, place.Message)
	if err != nil || message == nil || message.Status.State == v1alpha1.MessageCommitted {
		return err
	}
	summary := conditions.CommitResults(&message.Status, string(chat.UID), place)
	conditions.Message(&message.Status, summary, message.Generation, s.facts.Now)
	if err := r.Client.Status().Update(ctx, message); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("recording the place of message %s: %w", place.Message, err)
	}
	return nil
}

func resultsOf(t *v1alpha1.TurnStatus) *v1alpha1.MessagePlace {
	if t == nil {
		return nil
	}
	return t.Results
}

// settleOpenApprovals says of decisions that they came to nothing, or that the chat's status says already that they count.
func (r *Reconciler) settleOpenApprovals(ctx context.Context, s *seen, todo *plan.Plan) error {
	if err := r.settleApprovals(ctx, s, todo.NotPending, false); err != nil {
		return err
	}
	return r.settleApprovals(ctx, s, s.applied, true)
}
