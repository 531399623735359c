// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// many fills the cluster with chats of 20 messages of 4 KiB, all answered, and measures the manager that holds them.
// The manager is stopped while the bench plays its part and that of the generation pods.
func (b *bench) many(ctx context.Context, f *Figures, chats int) error {
	restore, err := b.withoutManager(ctx)
	if err != nil {
		return err
	}
	const writers = 16
	if err := each(ctx, writers, func(ctx context.Context, w int) error {
		for i := w; i < chats; i += writers {
			if err := b.fill(ctx, fmt.Sprintf("many-%d", i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := restore(ctx); err != nil {
		return err
	}
	f.ManyChats, err = b.managerMemory(ctx)
	return err
}

// untilLifted waits until the API server has noticed that the policies bind no longer.
func (b *bench) untilLifted(ctx context.Context) error {
	chat := &v1alpha1.Chat{ObjectMeta: meta("many-probe")}
	if err := b.create(ctx, chat); err != nil {
		return err
	}
	for _, probe := range []func() error{
		func() error { return b.client.Status().Update(ctx, chat) },
		func() error {
			probe := reply("many-probe", "none", "none", "", 1, "probe")
			if err := b.client.Create(ctx, probe); err != nil {
				return err
			}
			return b.client.Delete(ctx, probe)
		},
	} {
		for err := probe(); err != nil; err = probe() {
			if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				return fmt.Errorf("probing the policies: %w", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	if err := b.client.Delete(ctx, chat); err != nil {
		return fmt.Errorf("removing the probe: %w", err)
	}
	return nil
}

// reply is a generated message as a pod would create it.
func reply(name, chat, chatUID, parent string, index int64, text string) *v1alpha1.ChatMessage {
	now := metav1.NowMicro()
	return &v1alpha1.ChatMessage{ObjectMeta: meta(name), Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: chat}, Role: v1alpha1.RoleAssistant, Parent: parent, Index: &index,
		Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: &text}},
		Generation: &v1alpha1.MessageGeneration{
			ChatUID: chatUID, HistoryVersion: index, Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "none",
			Outcome: v1alpha1.OutcomeCompleted, StartedAt: now, FinishedAt: now,
		},
	}}
}

// fill writes one chat with its history, as a manager and its pods would have.
func (b *bench) fill(ctx context.Context, name string) error {
	const messages = 20
	text := strings.Repeat("0123456789abcde ", 256)
	chat := &v1alpha1.Chat{ObjectMeta: meta(name)}
	if err := b.create(ctx, chat); err != nil {
		return err
	}
	parent := ""
	for i := range int64(messages) {
		m := &v1alpha1.ChatMessage{ObjectMeta: meta(fmt.Sprintf("%s-m%d", name, i)),
			Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: name}}}
		if i%2 == 0 {
			m.Spec.Content = text
			if err := b.settled(ctx, chat, m, parent, i); err != nil {
				return err
			}
		} else {
			m = reply(m.Name, name, string(chat.UID), parent, i, text)
			if err := b.create(ctx, m); err != nil {
				return err
			}
		}
		parent = m.Name
	}
	chat.Status.Phase = v1alpha1.ChatWaiting
	chat.Status.History = v1alpha1.HistoryStatus{Version: messages, Head: parent, Length: messages}
	chat.Status.Turn = &v1alpha1.TurnStatus{
		Message: fmt.Sprintf("%s-m%d", name, messages-2), Parent: fmt.Sprintf("%s-m%d", name, messages-3),
		Index:          messages - 2,
		HistoryVersion: messages - 1, Result: v1alpha1.TurnAnswered,
	}
	chat.Status.Internal.Turn.LastRole = v1alpha1.RoleAssistant
	if err := b.client.Status().Update(ctx, chat); err != nil {
		return fmt.Errorf("filling chat %s: %w", name, err)
	}
	return nil
}

// settled creates a User message that has been answered.
func (b *bench) settled(ctx context.Context, chat *v1alpha1.Chat, m *v1alpha1.ChatMessage, parent string,
	index int64) error {
	if err := b.create(ctx, m); err != nil {
		return err
	}
	m.Status = v1alpha1.ChatMessageStatus{
		ObservedGeneration: 1, State: v1alpha1.MessageCommitted, ChatUID: string(chat.UID), Parent: parent, Index: &index,
		HistoryVersion: index + 1, Conditions: conditions(v1alpha1.ReasonAnswered, metav1.ConditionTrue),
	}
	if err := b.client.Status().Update(ctx, m); err != nil {
		return fmt.Errorf("settling message %s: %w", m.Name, err)
	}
	return nil
}

func conditions(reason v1alpha1.ConditionReason, ready metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: string(reason), Message: "As long as Parley's own.",
		LastTransitionTime: metav1.Now(),
	}}
}
