// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// families are the scenarios in which the chat has a sub-chat.
var families = []scenario{
	{name: "a chat waits for its sub-chat, which finishes", does: []step{
		prompts("hello"), awaits(beingAnswered), delegates("look it up"),
		awaits(reason("sub-prompt", v1alpha1.ReasonBeingAnswered)), fromHere(),
		answers(waitsForSub("call_1")), awaits(chatSays(v1alpha1.ReasonWaitingForSubChats)),
		subAnswers(text("It is the CNI.")), answers(results("call_1")), answers(text("It is the CNI, it says.")),
	}},
}

// delegates creates the sub-chat with a prompt.
func delegates(prompt string) step {
	return func(ctx context.Context, w *world) error {
		chat := &v1alpha1.Chat{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: subChatName},
			Spec:       v1alpha1.ChatSpec{Prompt: prompt, ParentRef: &v1alpha1.ChatReference{Name: chatName}},
		}
		if err := cluster.Client.Create(ctx, chat); err != nil {
			return fmt.Errorf("creating the sub-chat: %w", err)
		}
		return nil
	}
}

// subAnswers lets the generation pod answer the sub-chat's attempt under way, or the next one.
func subAnswers(r reply) step {
	return func(ctx context.Context, w *world) error {
		w.sub.replies = append(w.sub.replies, r)
		return w.await(ctx, "an attempt of the sub-chat is answered", func(*snapshot) bool { return len(w.sub.replies) == 0 })
	}
}

// waitsForSub is a reply with a call that waits for the sub-chat, for longer than any run takes.
func waitsForSub(id string) reply {
	return func(m *v1alpha1.ChatMessage) {
		calls(id)(m)
		m.Spec.Generation.WaitingFor = []v1alpha1.WaitingCall{{ID: id, Chat: subChatName,
			TimeoutSeconds: v1alpha1.MaxWaitSeconds}}
	}
}
