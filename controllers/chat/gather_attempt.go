// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/pods/placement"
)

// readAttempt reads the result of the attempt under way, and how its pod is.
func (g *gatherer) readAttempt(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	if chat.Status.Generation == nil {
		return nil
	}
	result, err := readMessage(ctx, g.cache, chat.Namespace, attempts.Of(chat.UID, &chat.Status).ResultName(chat.Name))
	if err != nil {
		return err
	}
	s.facts.Result, s.facts.Deleted = result, g.memory.deleted.newest(keyOf(chat))
	return g.readPod(ctx, s)
}

// readPod finds out whether the pod of the attempt can still answer.
func (g *gatherer) readPod(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	state, err := g.pods.Look(ctx, podOf(chat), s.configs)
	if err != nil {
		return err
	}
	s.podGone, s.lookAgain = state.Gone, state.LostIn
	s.facts.PodLost, s.facts.PodLostBy, s.facts.PodStarting = state.Lost, state.By, state.Starting
	if state.Starting != "" || state.Gone { // Its event may come before the cache shows which chats it has.
		s.lookAgain = plan.Sooner(s.lookAgain, placement.MaxUnseen)
	}
	return nil
}

// podWithHistory is the pod that has the chat's history at hand: the one that wrote its newest message, or has just
// been lost and then is none.
func (g *gatherer) podWithHistory(ctx context.Context, s *scope) (string, error) {
	chat := s.facts.Chat
	if s.facts.PodLost || plan.Overdue(&chat.Status, s.facts.Now) || chat.Status.History.Head == "" {
		return "", nil
	}
	if chat.Status.Generation != nil {
		return chat.Status.Generation.Pod, nil
	}
	head, err := g.generated(ctx, chat.Namespace, chat.Status.History.Head)
	if err != nil || head == nil {
		return "", err
	}
	return head.Spec.Generation.Pod, nil
}

// readSummary reads the message in which a model says what became of the turn that the plan has found ended.
func (g *gatherer) readSummary(ctx context.Context, s *scope, todo *plan.Plan) error {
	chat, st := s.facts.Chat, &todo.Status
	summary, err := g.generated(ctx, chat.Namespace, todo.Asks.Summary)
	if err != nil {
		return err
	}
	s.facts.Summary, s.facts.SummaryName = summary, todo.Asks.Summary
	if summary == nil {
		return nil
	}
	head, err := g.generated(ctx, chat.Namespace, st.History.Head)
	// An older one is left where the reply was cut off.
	if head != nil && head.Spec.Generation.HistoryVersion == st.History.Version-1 {
		s.facts.HeadPod = head.Spec.Generation.Pod
	}
	return err
}

// generated reads a generated message; nil if there is none.
func (g *gatherer) generated(ctx context.Context, namespace, name string) (*v1beta1.ChatMessage, error) {
	m, err := readMessage(ctx, g.cache, namespace, name)
	if err != nil || m == nil || m.Spec.Generation == nil {
		return nil, err
	}
	return m, nil
}
