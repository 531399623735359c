// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chattest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/text/content"
)

// AnsweredTurn is a question at the end of the chat's history, which says all that a message does whose turn is over,
// and the answer to it. Each has the text. The status of the chat, which has its UID, is that of one at rest then.
func AnsweredTurn(chat *v1beta1.Chat, text string, now time.Time) (question, answer *v1beta1.ChatMessage) {
	started := metav1.NewMicroTime(now)
	history, status := &chat.Status.History, &chat.Status
	question = In(chat.Namespace, User(chat.Name, fmt.Sprintf("%s-q%d", chat.Name, history.Length/2), Content(text),
		Defaulted))
	question.Generation = 1
	history.Version++
	status.Turn = &v1beta1.TurnStatus{Message: question.Name, Parent: history.Head, Index: history.Length,
		HistoryVersion: history.Version, StartedAt: &started, Result: v1beta1.TurnAnswered, Steps: 1}
	status.Internal.Turn = v1beta1.TurnInternalStatus{ContentHash: content.Of(question), LastRole: v1beta1.RoleAssistant}
	commit := v1beta1.CommittedMessage{Message: question.Name, Parent: history.Head, Position: history.Length,
		HistoryVersion: history.Version, ContentHash: content.Of(question)}
	conditions.Commit(&question.Status, string(chat.UID), &commit)
	conditions.Message(&question.Status, conditions.OfTurn(&v1beta1.TurnOutcome{Result: v1beta1.TurnAnswered}),
		question.Generation, now)
	answer = answerTo(chat, question.Name, text, started)
	answer.Spec.Follows = []v1beta1.CommittedMessage{commit}
	usage := answer.Spec.Generation.Usage
	history.Version, history.Head, history.Length = history.Version+1, answer.Name, history.Length+2
	status.Usage.InputTokens += usage.InputTokens
	status.Usage.OutputTokens += usage.OutputTokens
	rests(chat, metav1.NewTime(now))
	return question, answer
}

// answerTo is what a generation pod writes.
func answerTo(chat *v1beta1.Chat, parent, text string, at metav1.MicroTime) *v1beta1.ChatMessage {
	attempt := fence.Fence{ChatUID: string(chat.UID), HistoryVersion: chat.Status.History.Version, Attempt: 1}
	owner := metav1.NewControllerRef(chat, v1beta1.GroupVersion.WithKind("Chat"))
	owner.BlockOwnerDeletion = nil
	return &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: chat.Namespace, Name: attempt.ResultName(chat.Name),
			OwnerReferences: []metav1.OwnerReference{*owner}},
		Spec: v1beta1.ChatMessageSpec{
			ChatRef: v1beta1.ChatReference{Name: chat.Name}, Role: v1beta1.RoleAssistant, Parent: parent,
			Index: new(chat.Status.History.Length + 1),
			Parts: []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: &text}},
			Generation: &v1beta1.MessageGeneration{
				ChatUID: attempt.ChatUID, HistoryVersion: attempt.HistoryVersion, Attempt: attempt.Attempt,
				Action: v1beta1.ActionGenerateAssistant, Pod: "parley-generation-7d9fx", Outcome: v1beta1.OutcomeCompleted,
				FinishReason: "stop", Model: &v1beta1.ModelIdentity{Provider: string(v1beta1.ProviderOpenAI), Config: "model",
					Name: "gpt-5.2"},
				Usage:   &v1beta1.TokenUsage{InputTokens: 1024 * attempt.HistoryVersion, OutputTokens: 1024},
				Context: &v1beta1.ContextStatus{Tokens: 1024 * attempt.HistoryVersion, Limit: 200_000},
				Preview: text[:min(len(text), 28)], StartedAt: at, FinishedAt: at,
			},
		},
	}
}

// rests is what the status of a chat says when it has nothing to do.
func rests(chat *v1beta1.Chat, now metav1.Time) {
	st := &chat.Status
	st.ObservedGeneration, st.Phase, st.IdleSince = chat.Generation, v1beta1.ChatWaiting, &now
	st.Title, st.TitleSource = "How do I rotate the signing keys of my cluster?", v1beta1.TitleFromModel
	st.LastReply, st.Model = "0123456789abcde 0123456789ab", "gpt-5.2"
	st.Context = &v1beta1.ContextStatus{Tokens: 1024 * st.History.Version, Limit: 200_000}
	st.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue,
		ObservedGeneration: chat.Generation, LastTransitionTime: now, Reason: string(v1beta1.ReasonAnswered),
		Message: "Every message is answered"}}
}
