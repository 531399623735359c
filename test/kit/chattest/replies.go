// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chattest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/fence"
)

// Reply is something of what an attempt yields. The replies to one attempt add up.
type Reply func(*v1beta1.ChatMessage)

// Answer is what the chat's generation pod creates for the attempt under way: completed in no time, with what the
// replies say.
func Answer(chat *v1beta1.Chat, replies ...Reply) *v1beta1.ChatMessage {
	st, g, at := &chat.Status, chat.Status.Generation, chat.Status.Generation.StartedAt
	if at.IsZero() {
		at = *Ago(0)
	}
	m := &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       chat.Namespace,
			Name:            attempts.Of(chat.UID, st).ResultName(chat.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(chat, v1beta1.GroupVersion.WithKind("Chat"))},
		},
		Spec: v1beta1.ChatMessageSpec{
			ChatRef: v1beta1.ChatReference{Name: chat.Name}, Role: roles[g.Action], Parent: st.History.Head,
			Index: new(st.History.Length), Follows: slices.Clone(st.Internal.Tail),
			Generation: &v1beta1.MessageGeneration{
				ChatUID: string(chat.UID), HistoryVersion: st.History.Version, Attempt: g.Attempt, Action: g.Action, Pod: g.Pod,
				Outcome: v1beta1.OutcomeCompleted, StartedAt: at, FinishedAt: at,
			},
		},
	}
	if g.Action == v1beta1.ActionGenerateAssistant && st.Turn != nil {
		m.Spec.Generation.CallsCanceledReasonBefore = st.Turn.CallsCanceledReason
	}
	for _, reply := range replies {
		reply(m)
	}
	return m
}

// Generated is a message that an attempt of no chat in particular has yielded.
func Generated(name string, role v1beta1.MessageRole, replies ...Reply) *v1beta1.ChatMessage {
	m := &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ChatMessageSpec{
		Role: role, Generation: &v1beta1.MessageGeneration{Outcome: v1beta1.OutcomeCompleted},
	}}
	for _, reply := range replies {
		reply(m)
	}
	return m
}

// TurnSummary is what the pod that gave a turn's last reply creates to say what became of the turn.
func TurnSummary(reply *v1beta1.ChatMessage, says string) *v1beta1.ChatMessage {
	last, chat := reply.Spec.Generation, reply.Spec.ChatRef.Name
	version := last.HistoryVersion + 1
	m := &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: reply.Namespace, Name: fence.SummaryName(chat, version),
			OwnerReferences: reply.OwnerReferences},
		Spec: v1beta1.ChatMessageSpec{ChatRef: reply.Spec.ChatRef, Role: v1beta1.RoleAssistant},
	}
	m.Spec.Generation = &v1beta1.MessageGeneration{
		ChatUID: last.ChatUID, HistoryVersion: version, Attempt: 1, Action: v1beta1.ActionSummarizeTurn, Pod: last.Pod,
		Outcome: v1beta1.OutcomeCompleted, TurnSummary: says, Usage: &v1beta1.TokenUsage{InputTokens: 4, TotalTokens: 4},
		StartedAt: last.FinishedAt, FinishedAt: last.FinishedAt,
	}
	return m
}

// roles are those of the messages that actions yield.
var roles = map[v1beta1.GenerationAction]v1beta1.MessageRole{
	v1beta1.ActionGenerateAssistant: v1beta1.RoleAssistant,
	v1beta1.ActionExecuteTools:      v1beta1.RoleTool,
	v1beta1.ActionCompact:           v1beta1.RoleSystem,
}
