// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/internal/text/firstwords"
)

// readResults reads what clients answered, oldest first.
func (g *gatherer) readResults(ctx context.Context, s *scope) error {
	for _, name := range s.results {
		message, err := readMessage(ctx, g.live, s.facts.Chat.Namespace, name)
		if err != nil {
			return err
		}
		if message != nil && plan.IsOpen(s.facts.Chat, message) {
			s.facts.Results = append(s.facts.Results, message)
		}
	}
	slices.SortFunc(s.facts.Results, func(a, b *v1beta1.ChatMessage) int { return plan.TakeOrder(s.facts.Chat, a, b) })
	return nil
}

// maxAuthor is the most bytes of the name of who decided: as the API bounds them.
const maxAuthor = 1024

// readApprovals reads what people decided, oldest first.
func (g *gatherer) readApprovals(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	var approvals v1beta1.ToolApprovalList
	if err := g.cache.List(ctx, &approvals, client.InNamespace(chat.Namespace),
		client.MatchingFields{index.OpenApprovalsByChat: chat.Name}); err != nil {
		return fmt.Errorf("listing the approvals of chat %s: %w", chat.Name, err)
	}
	slices.SortFunc(approvals.Items, func(a, b v1beta1.ToolApproval) int { // Nobody has written to an open one.
		return plan.ByCreation(&a, &b, a.ResourceVersion, b.ResourceVersion)
	})
	for i := range approvals.Items {
		approval := &approvals.Items[i]
		if plan.Recorded(chat, approval) {
			s.applied = append(s.applied, approval.Name)
			continue
		}
		s.facts.Approvals = append(s.facts.Approvals, plan.Approval{ToolDecision: v1beta1.ToolDecision{
			ID: approval.Spec.ToolCallID, Decision: approval.Spec.Decision, Approval: approval.Name,
			Comment: approval.Spec.Comment, Content: approval.Spec.Content, Digest: approval.Spec.Digest,
			By: clip.Bytes(approval.Annotations[v1beta1.AnnotationCreatedBy], maxAuthor), At: new(approval.CreationTimestamp),
		}})
	}
	return nil
}

// readQueue reads the queued messages. That the cache does not show one does not prove that it was deleted. One that
// has since been created under its name may be for another chat.
func (g *gatherer) readQueue(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	for _, queued := range chat.Status.Queue {
		for _, reader := range []client.Reader{g.cache, g.live} {
			message, err := readMessage(ctx, reader, chat.Namespace, queued.Name)
			if err != nil {
				return err
			}
			if message != nil && message.Spec.ChatRef.Name == chat.Name {
				s.facts.Queued = append(s.facts.Queued, plan.MessageOf(message))
				break
			}
		}
	}
	return nil
}

// readUnsettled reads the messages of people and clients in the chat that have yet to be dealt with.
func (g *gatherer) readUnsettled(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	var messages v1beta1.ChatMessageList
	if err := g.cache.List(ctx, &messages, client.InNamespace(chat.Namespace),
		client.MatchingFields{index.UnsettledByChat: chat.Name}); err != nil {
		return fmt.Errorf("listing open messages: %w", err)
	}
	s.unsettled = messages.Items
	return nil
}

// readOpen finds the messages of people that have yet to be taken up: User messages in the order to take them, the
// chat's prompt first, then in the order of their creation; clients' results; and the first message that was edited.
func (g *gatherer) readOpen(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	var open []v1beta1.ChatMessage
	if chat.Status.Internal.Superseded != nil { // It is not known of all yet whether they were part of the history.
		return nil
	}
	for i := range s.unsettled {
		m := &s.unsettled[i]
		commit, err := g.commitOf(ctx, s, m)
		switch {
		case err != nil:
			return err
		case commit != nil && m.Spec.Role == v1beta1.RoleUser:
			s.facts.NoteEdit(m, commit)
		case commit != nil || !plan.IsOpen(chat, m):
		case m.Spec.Role == v1beta1.RoleUser:
			open = append(open, *m)
		default:
			s.results = append(s.results, m.Name)
		}
	}
	if err := g.confirmEdit(ctx, s); err != nil {
		return err
	}
	open = s.findPrompt(open)
	slices.SortFunc(open, func(a, b v1beta1.ChatMessage) int { return plan.TakeOrder(chat, &a, &b) })
	return g.confirmOpen(ctx, s, open)
}

// confirmOpen notes the messages that are open beyond doubt.
func (g *gatherer) confirmOpen(ctx context.Context, s *scope, open []v1beta1.ChatMessage) error {
	for i := range open {
		if still, err := g.stillOpen(ctx, s.facts.Chat, &open[i]); err != nil {
			return err
		} else if still {
			s.facts.Open = append(s.facts.Open, plan.MessageOf(&open[i]))
		}
	}
	return g.readBeginning(ctx, s)
}

// confirmEdit looks at the message itself, and at the history: the cache may show an older message of its name, and its
// status an older commit.
func (g *gatherer) confirmEdit(ctx context.Context, s *scope) error {
	if s.facts.Edited == nil {
		return nil
	}
	chat := s.facts.Chat
	live, err := readMessage(ctx, g.live, chat.Namespace, s.facts.Edited.Name)
	s.facts.Edited = nil
	if err != nil || live == nil {
		return err
	}
	whole, err := g.wholeOf(ctx, s)
	if i := whole.IndexOf(live); err == nil && i >= 0 {
		s.facts.NoteEdit(live, whole.Chain[i].Commit)
		if s.facts.Edited != nil {
			s.facts.Edited.Tail = history.Tail(whole.Chain[:i])
		}
	}
	return err
}

// stillOpen makes sure that the message has not been dealt with, which the cache may not show yet. What the chat
// decided before its last write, the message said before that: so a message whose newest known write is later says all
// there is to say. resourceVersions of custom resources count the writes of one store. Otherwise the API server is
// asked; the chat was read first, so that the answer is late enough.
func (g *gatherer) stillOpen(ctx context.Context, chat *v1beta1.Chat, m *v1beta1.ChatMessage) (bool, error) {
	if older(chat.ResourceVersion, m.ResourceVersion) {
		return true, nil
	}
	live, err := readMessage(ctx, g.live, m.Namespace, m.Name)
	if err != nil || live == nil {
		return false, err
	}
	return live.UID == m.UID && plan.IsOpen(chat, live), nil
}

// commitOf is the commit of the message; nil if it is not part of the history. Its own status may say so late, or may
// say an older one: then the history tells, which is read where a generated message seems to follow the message.
func (g *gatherer) commitOf(ctx context.Context, s *scope, m *v1beta1.ChatMessage) (*v1beta1.CommittedMessage,
	error) {
	chat := s.facts.Chat
	if commit := history.RecordedBy(chat, m.Name); commit != nil && history.Is(commit, m) {
		return commit, nil
	}
	if maybe, err := g.mayBeFollowed(ctx, chat, m); err != nil || !maybe {
		return plan.CommitOf(chat, m), err
	}
	whole, err := g.wholeOf(ctx, s)
	if i := whole.IndexOf(m); i >= 0 {
		return whole.Chain[i].Commit, nil
	}
	return plan.CommitOf(chat, m), err
}

// mayBeFollowed reports whether a generated message may follow the message. The cache is sure to have all that do if it
// has the newest one of the history: it learns of messages in the order of their creation.
func (g *gatherer) mayBeFollowed(ctx context.Context, chat *v1beta1.Chat, m *v1beta1.ChatMessage) (bool, error) {
	newest := history.NewestGenerated(chat)
	if newest == "" {
		return false, nil
	}
	known, err := g.generated(ctx, chat.Namespace, newest)
	if err != nil || known == nil || known.Spec.Generation.ChatUID != string(chat.UID) {
		return true, err
	}
	var followers v1beta1.ChatMessageList
	err = g.cache.List(ctx, &followers, client.InNamespace(chat.Namespace),
		client.MatchingFields{index.MessagesByParent: m.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing what follows message %s: %w", m.Name, err)
	}
	return slices.ContainsFunc(followers.Items, func(f v1beta1.ChatMessage) bool {
		return history.Follows(chat, &f, m)
	}), nil
}

// readBeginning reads how the message begins that a chat without a title is about to begin with: the cache has no
// texts. A chat's own prompt is there until it has become a message.
func (g *gatherer) readBeginning(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	if len(s.facts.Open) == 0 || !plan.NeedsTitle(chat) {
		return nil
	}
	first := &s.facts.Open[0]
	prompt := plan.PromptMessage(chat)
	switch {
	case first.FirstWords != "":
	case first.Name == prompt.Name && first.ContentHash == content.Hash(&prompt.Spec):
		first.FirstWords = firstwords.Of(&prompt.Spec)
	default:
		message, err := readMessage(ctx, g.live, chat.Namespace, first.Name)
		if err != nil || message == nil || content.Of(message) != first.ContentHash {
			return err
		}
		first.FirstWords = firstwords.Of(&message.Spec)
	}
	return nil
}

// findPrompt looks for the message that spec.prompt stands for, if the chat has not begun. Until there is one no other
// message is taken up.
func (s *scope) findPrompt(open []v1beta1.ChatMessage) []v1beta1.ChatMessage {
	chat := s.facts.Chat
	if chat.Spec.Prompt == "" || chat.Status.History.Version > 0 {
		return open
	}
	name := plan.PromptName(chat)
	i := slices.IndexFunc(open, func(m v1beta1.ChatMessage) bool { return m.Name == name })
	if i >= 0 && !plan.IsPrompt(chat, &open[i]) {
		s.facts.NoPrompt = &plan.NoPrompt{Message: name}
		return nil
	}
	s.facts.PromptMissing = i < 0
	return open
}

// readCalls reads the calls of the reply that the plan asks about.
func (g *gatherer) readCalls(ctx context.Context, s *scope, todo *plan.Plan) error {
	message, err := readMessage(ctx, g.live, s.facts.Chat.Namespace, todo.Asks.Calls)
	if err != nil {
		return err
	}
	in := &todo.Status.Internal.Turn
	s.facts.CallsOf, s.facts.Calls = todo.Asks.Calls, nil
	if message == nil {
		return nil
	}
	s.facts.Calls = plan.RequiredCalls(in.Results, message)
	if in.AskingMessage == "" {
		return nil
	}
	asking, err := readMessage(ctx, g.live, s.facts.Chat.Namespace, in.AskingMessage)
	if err == nil && asking != nil {
		s.facts.Calls = append(s.facts.Calls, plan.RequiredCalls(in.Results, asking)...)
	}
	return err
}
