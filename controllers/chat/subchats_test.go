// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// spawning is a world in which the chat has committed that a sub-chat is to be started.
func spawning(t *testing.T) (w *world, name string) {
	t.Helper()
	w, name = newWorld(t), agents.Name("c", "chat-uid.1.a")
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	chat := w.chat()
	results := chattest.Answer(chat, chattest.Results("a"), chattest.Changes(v1beta1.AgentChange{
		Key: "chat-uid.1.a", Chat: name, Spawn: &v1beta1.AgentSpawn{Prompt: "Look."}}))
	results.Name, results.UID, results.CreationTimestamp = "earlier", "earlier-uid", metav1.NewTime(now)
	if err := w.Direct.Create(t.Context(), results); err != nil {
		t.Fatal(err)
	}
	chat.Status.Internal.AgentsOf = "earlier"
	if err := w.Direct.Status().Update(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	w.memory.written.invalidate(ofChat.NamespacedName)
	return w, name
}

func TestASubChatIsStartedOnceWhateverFails(t *testing.T) {
	for _, fails := range []string{"live get chatmessage", "live get chat", "create chat", "update status of chat"} {
		t.Run(fails, func(t *testing.T) {
			w, name := spawning(t)
			failed := false
			w.Fail = func(call string) error {
				if call != fails || failed {
					return nil
				}
				failed = true
				return fakeapi.Timeout.Err()
			}
			if _, err := w.reconcile(); err == nil || !failed {
				t.Errorf("nothing failed: %v", err)
			}
			if _, err := w.reconcile(); err != nil || w.chat().Status.Internal.AgentsOf != "" {
				t.Errorf("it is not done with: %v", err)
			}
			if sub := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.Chat(name))); sub.Spec.Prompt != "Look." {
				t.Errorf("the sub-chat is %+v", sub.Spec)
			}
		})
	}
}

// A manager whose cache is late does not know that another one has started the sub-chat, nor that it has been deleted.
func TestStaleCacheDoesNotRestartDeletedSubChat(t *testing.T) {
	w, name := spawning(t)
	seen := w.chat()
	now := seen.DeepCopy()
	now.Status.Internal.AgentsOf = ""
	if err := w.Direct.Status().Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := w.actuator.changeAgents(t.Context(), &scope{facts: plan.Facts{Chat: seen}}, "earlier"); err != nil {
		t.Fatal(err)
	}
	var sub v1beta1.Chat
	if err := w.Direct.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, &sub); err == nil {
		t.Error("it is started again")
	}
}

func TestARefusedSubChatHoldsNothingUp(t *testing.T) {
	w, _ := spawning(t)
	w.Fail = func(call string) error {
		if call == "create chat" {
			return fakeapi.Forbidden.Err()
		}
		return nil
	}
	if _, err := w.reconcile(); err != nil || w.chat().Status.Internal.AgentsOf != "" {
		t.Errorf("it is not done with: %v", err)
	}
}

func TestFailingWebhookDelaysSubChat(t *testing.T) {
	w, name := spawning(t)
	failing := true
	w.Fail = func(call string) error {
		if call == "create chat" && failing {
			return apierrors.NewInternalError(errors.New(`failed calling webhook "chats.example.com": connection refused`))
		}
		return nil
	}
	if _, err := w.reconcile(); err == nil || w.chat().Status.Internal.AgentsOf == "" {
		t.Errorf("it is not retried: %v", err)
	}
	failing = false
	if _, err := w.reconcile(); err != nil || w.chat().Status.Internal.AgentsOf != "" {
		t.Errorf("it is not done with: %v", err)
	}
	fakeapi.Read(t, w.Server, chattest.In("ns", chattest.Chat(name)))
}

func TestSubChatIsRejectedWhileWebhookKeepsFailing(t *testing.T) {
	change := &v1beta1.AgentChange{Chat: "sub"}
	err := apierrors.NewInternalError(errors.New(`failed calling webhook "chats.example.com": connection refused`))
	check.Equal(t, "it is rejected at once", "", rejection(err, change, webhookRetries-1))
	if rejection(err, change, webhookRetries) == "" {
		t.Error("it is never rejected")
	}
}

func TestSubChatThatIsCancelledIsInterrupted(t *testing.T) {
	w, name := spawning(t)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	chat := w.chat()
	cancels := chattest.Generated("later", v1beta1.RoleTool,
		chattest.Changes(v1beta1.AgentChange{Key: "chat-uid.2.a", Chat: name}))
	if err := w.Direct.Create(t.Context(), chattest.In("ns", cancels)); err != nil {
		t.Fatal(err)
	}
	chat.Status.Internal.AgentsOf = "later"
	if err := w.Direct.Status().Update(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	if err := w.actuator.changeAgents(t.Context(), &scope{facts: plan.Facts{Chat: chat}}, "later"); err != nil {
		t.Fatal(err)
	}
	sub := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.Chat(name)))
	if got, want := sub.Annotations[v1beta1.AnnotationInterrupt], agents.Token("chat-uid.2.a"); got != want {
		t.Errorf("its interruption has token %q, want %q", got, want)
	}
}
