// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
)

// generated is a result of the chat "c".
func generated(uid string, version int64, attempt int32) *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("c-%d-%d", version, attempt)},
		Spec: v1beta1.ChatMessageSpec{
			ChatRef: v1beta1.ChatReference{Name: "c"}, Parent: "c-prompt",
			Parts: []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: new("words")}},
			Generation: &v1beta1.MessageGeneration{
				ChatUID: uid, HistoryVersion: version, Attempt: attempt, Pod: "pod", Action: v1beta1.ActionGenerateAssistant,
				Outcome: v1beta1.OutcomeCompleted, Preview: "words",
			},
		},
	}
}

func TestNewestDeletedResultWakesItsChat(t *testing.T) {
	report, summary := generated("u", 3, 2), generated("u", 9, 1)
	report.Spec.Generation.Outcome, summary.Name = v1beta1.OutcomeFailed, "c-9-summary"
	for name, c := range map[string]struct {
		deleted []*v1beta1.ChatMessage
		want    string
	}{
		"one": {[]*v1beta1.ChatMessage{generated("u", 3, 1)}, "c-3-1"},
		"all of a chat": {[]*v1beta1.ChatMessage{generated("u", 1, 1), generated("u", 3, 1), generated("u", 2, 5)},
			"c-3-1"},
		"a report of a failure":   {[]*v1beta1.ChatMessage{generated("u", 3, 1), report}, "c-3-2"},
		"a chat of the same name": {[]*v1beta1.ChatMessage{generated("u", 3, 1), generated("v", 1, 1)}, "c-1-1"},
		"what is no result":       {[]*v1beta1.ChatMessage{summary}, ""},
		"what nobody generated": {[]*v1beta1.ChatMessage{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-1-1"},
			Spec: v1beta1.ChatMessageSpec{ChatRef: v1beta1.ChatReference{Name: "c"}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &enqueuer{memory: &memory{}}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			for _, m := range c.deleted {
				e.messageHandler().Delete(t.Context(), event.DeleteEvent{Object: m}, queue)
			}
			if queue.Len() != 1 {
				t.Errorf("%d chats were woken", queue.Len())
			}
			key, got := request("ns", "c").NamespacedName, ""
			if m := e.memory.deleted.newest(key); m != nil {
				got = m.Name
				if m.Spec.Parent != "c-prompt" || len(m.Spec.Parts) > 0 || m.Spec.Generation.Preview != "" {
					t.Errorf("remembered %+v", m.Spec)
				}
			}
			if got != c.want {
				t.Errorf("the newest is %q", got)
			}
			if e.memory.deleted.forget(key); e.memory.deleted.newest(key) != nil {
				t.Error("it outlives its chat")
			}
		})
	}
}
