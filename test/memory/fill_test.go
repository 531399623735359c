// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/content"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/testing/chattest"
)

const (
	// turnsAtRest of a chat at rest have two messages each.
	turnsAtRest = 10
	// writers fill the cluster at once.
	writers = 16
	// messageBytes is the length of each message's text.
	messageBytes = 4096
)

// fill writes chats at rest, as a manager and its pods would have.
func fill(t testing.TB, namespace string, chats, turns int) {
	t.Helper()
	put(t, chats, func(i int) []client.Object { return chatAtRest(namespace, nameAtRest(i), turns) })
}

// nameAtRest names the object of that number.
func nameAtRest(i int) string { return fmt.Sprintf("support-%05d", i) }

// put writes what each of n yields past the API server.
func put(t testing.TB, n int, of func(i int) []client.Object) {
	t.Helper()
	eachOf(t, n, func(ctx context.Context, i int) error { return cluster.Put(ctx, of(i)...) })
}

// eachOf runs n, as many at once as there are writers, and waits for all.
func eachOf(t testing.TB, n int, run func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return run(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// chatAtRest is a chat with the messages of so many turns.
func chatAtRest(namespace, name string, turns int) []client.Object {
	chat := stored(chattest.In(namespace, chattest.Chat(name)), "kubectl")
	objects := []client.Object{chat}
	for turn := range int64(turns) {
		objects = append(objects, fillTurn(chat, turn)...)
	}
	return objects
}

// fillTurn returns a question and its answer, and writes into the status of the chat what it says then.
func fillTurn(chat *v1alpha1.Chat, turn int64) []client.Object {
	text := strings.Repeat("0123456789abcde ", messageBytes/16)
	started := metav1.NewMicroTime(time.Now())
	history, status := &chat.Status.History, &chat.Status
	question := stored(chattest.In(chat.Namespace, chattest.User(chat.Name, fmt.Sprintf("%s-q%d", chat.Name, turn),
		chattest.Content(text), chattest.Defaulted)), "kubectl")
	history.Version++
	status.Turn = &v1alpha1.TurnStatus{Message: question.Name, Parent: history.Head, Index: history.Length,
		HistoryVersion: history.Version, StartedAt: &started, Result: v1alpha1.TurnAnswered, Steps: 1}
	status.Internal.Turn = v1alpha1.TurnInternalStatus{ContentHash: content.Of(question), LastRole: v1alpha1.RoleAssistant}
	conditions.Commit(&question.Status, string(chat.UID), status.Turn, &status.Internal.Turn)
	conditions.Message(&question.Status, conditions.OfTurn(status.Turn, nil), question.Generation, time.Now())
	answer := stored(answerTo(chat, question.Name, text, started), "generator")
	owner := metav1.NewControllerRef(chat, v1alpha1.GroupVersion.WithKind("Chat"))
	owner.BlockOwnerDeletion = nil
	answer.OwnerReferences = []metav1.OwnerReference{*owner}
	usage := answer.Spec.Generation.Usage
	history.Version, history.Head, history.Length = history.Version+1, answer.Name, history.Length+2
	status.Usage.InputTokens += usage.InputTokens
	status.Usage.OutputTokens += usage.OutputTokens
	rests(chat)
	return []client.Object{question, answer}
}

// stored gives an object what the API server gives those that a manager of fields creates.
func stored[T client.Object](o T, manager string) T {
	now := metav1.Now()
	o.SetUID(uuid.NewUUID())
	o.SetGeneration(1)
	o.SetCreationTimestamp(now)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: v1alpha1.GroupVersion.String(), Time: &now, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{".":{},"f:chatRef":{".":{},"f:name":{}},"f:content":{},"f:role":{}}}`)}})
	return o
}

// answerTo is what a generation pod writes.
func answerTo(chat *v1alpha1.Chat, parent, text string, started metav1.MicroTime) *v1alpha1.ChatMessage {
	attempt := fence.Fence{ChatUID: string(chat.UID), HistoryVersion: chat.Status.History.Version, Attempt: 1}
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: chat.Namespace, Name: attempt.ResultName(chat.Name)},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: chat.Name}, Role: v1alpha1.RoleAssistant, Parent: parent,
			Index: new(chat.Status.History.Length + 1),
			Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: &text}},
			Generation: &v1alpha1.MessageGeneration{
				ChatUID: attempt.ChatUID, HistoryVersion: attempt.HistoryVersion, Attempt: attempt.Attempt,
				Action: v1alpha1.ActionGenerateAssistant, Pod: "parley-generation-7d9fx", Outcome: v1alpha1.OutcomeCompleted,
				FinishReason: "stop", Model: &v1alpha1.ModelIdentity{Provider: string(v1alpha1.ProviderOpenAI), Config: "model",
					Name: "gpt-5.2"},
				Usage:   &v1alpha1.TokenUsage{InputTokens: 1024 * attempt.HistoryVersion, OutputTokens: 1024},
				Context: &v1alpha1.ContextStatus{Tokens: 1024 * attempt.HistoryVersion, Limit: 200_000},
				Preview: text[:28], StartedAt: started, FinishedAt: metav1.NewMicroTime(time.Now()),
			},
		},
	}
}

// rests is what the status of a chat says when it has nothing to do.
func rests(chat *v1alpha1.Chat) {
	now, st := metav1.Now(), &chat.Status
	st.ObservedGeneration, st.Phase, st.RestingSince = chat.Generation, v1alpha1.ChatWaiting, &now
	st.Title, st.TitleSource = "How do I rotate the signing keys of my cluster?", v1alpha1.TitleFromModel
	st.LastReply, st.Model = "0123456789abcde 0123456789ab", "gpt-5.2"
	st.Context = &v1alpha1.ContextStatus{Tokens: 1024 * st.History.Version, Limit: 200_000}
	st.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
		ObservedGeneration: chat.Generation, LastTransitionTime: now, Reason: string(v1alpha1.ReasonAnswered),
		Message: "Every message is answered"}}
}
