// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package playedpod says what generation pods create, for tests that play their part.
package playedpod

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/fence"
)

// Message is the frame of what the chat's generation pod creates for the attempt under way:
// completed, and with nothing in it.
func Message(chat *v1alpha1.Chat) *v1alpha1.ChatMessage {
	st, g, now := &chat.Status, chat.Status.Generation, metav1.NewMicroTime(time.Now())
	m := &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       chat.Namespace,
			Name:            attempts.Of(chat.UID, st).ResultName(chat.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(chat, v1alpha1.GroupVersion.WithKind("Chat"))},
		},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: chat.Name}, Role: roles[g.Action], Parent: st.History.Head,
			Index: new(st.History.Length),
			Generation: &v1alpha1.MessageGeneration{
				ChatUID: string(chat.UID), HistoryVersion: st.History.Version, Attempt: g.Attempt, Action: g.Action, Pod: g.Pod,
				Outcome: v1alpha1.OutcomeCompleted, StartedAt: now, FinishedAt: now,
			},
		},
	}
	if g.Action == v1alpha1.ActionGenerateAssistant && st.Turn != nil {
		m.Spec.Generation.CallsGivenUpBefore = st.Turn.CallsGivenUp
	}
	return m
}

// roles are those of the messages that actions yield.
var roles = map[v1alpha1.GenerationAction]v1alpha1.MessageRole{
	v1alpha1.ActionGenerateAssistant: v1alpha1.RoleAssistant,
	v1alpha1.ActionExecuteTools:      v1alpha1.RoleTool,
	v1alpha1.ActionCompact:           v1alpha1.RoleSystem,
}

// Answer is what it creates when its model says "Fine.".
func Answer(chat *v1alpha1.Chat) *v1alpha1.ChatMessage {
	m := Message(chat)
	m.Spec.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("Fine.")}}
	m.Spec.Generation.Preview = "Fine."
	m.Spec.Generation.Usage = &v1alpha1.TokenUsage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}
	return m
}

// Summary is what a pod creates to say what became of the turn whose last reply it gave;
// the reply's commit made the version.
func Summary(chat *v1alpha1.Chat, version int64, pod, says string) *v1alpha1.ChatMessage {
	now := metav1.NewMicroTime(time.Now())
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: chat.Namespace, Name: fence.SummaryName(chat.Name, version),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(chat, v1alpha1.GroupVersion.WithKind("Chat"))},
		},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: chat.Name}, Role: v1alpha1.RoleAssistant,
			Generation: &v1alpha1.MessageGeneration{
				ChatUID: string(chat.UID), HistoryVersion: version, Attempt: 1, Action: v1alpha1.ActionSummarizeTurn, Pod: pod,
				Outcome: v1alpha1.OutcomeCompleted, TurnSummary: says, StartedAt: now, FinishedAt: now,
			},
		},
	}
}
