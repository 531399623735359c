// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// talk is people who say the next thing as soon as they are answered, one in a chat of each namespace, and generation
// pods that answer each attempt which they are given, once.
type talk struct {
	t *testing.T

	mu    sync.Mutex
	chats map[types.NamespacedName]*conversation
	// paid are the attempts that a model was asked for.
	paid map[fence.Fence]bool
	// most is how many turns people take in each chat; 0: no end.
	most int
	// silent people say nothing more.
	silent bool
}

// conversation is how far a chat has come.
type conversation struct {
	// asked are the messages that were sent, and answered those whose turn is over.
	asked, answered int
}

// talkIn begins to talk in the namespaces, for so many turns in each; 0: until they fall silent.
func talkIn(t *testing.T, namespaces []string, turns int) *talk {
	t.Helper()
	k := &talk{t: t, chats: map[types.NamespacedName]*conversation{}, paid: map[fence.Fence]bool{}, most: turns}
	for _, ns := range namespaces {
		k.chats[types.NamespacedName{Namespace: ns, Name: "chat"}] = &conversation{asked: 1}
	}
	k.follow()
	for _, ns := range namespaces {
		cluster.Create(t, chattest.In(ns, chattest.Chat("chat", chattest.Prompt("Is anybody there?"))))
	}
	return k
}

// follow plays people and pods to the end of the test.
func (k *talk) follow() {
	k.t.Helper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Client.Scheme()})
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	changes, err := watcher.Watch(ctx, &v1beta1.ChatList{})
	if err != nil {
		k.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for change := range changes.ResultChan() {
			if chat, ok := change.Object.(*v1beta1.Chat); ok {
				if err := k.look(ctx, chat); err != nil && ctx.Err() == nil {
					k.t.Error(err)
				}
			}
		}
	})
	k.t.Cleanup(func() { changes.Stop(); stop(); running.Wait() })
}

// look answers an attempt, or says the next thing.
func (k *talk) look(ctx context.Context, chat *v1beta1.Chat) error {
	next := k.next(chat)
	if next == nil {
		return nil
	}
	if err := cluster.Client.Create(ctx, next); err != nil {
		return fmt.Errorf("creating %s in %s: %w", next.Name, next.Namespace, err)
	}
	return nil
}

// next is the message that comes next; nil: none.
func (k *talk) next(chat *v1beta1.Chat) *v1beta1.ChatMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.chats[client.ObjectKeyFromObject(chat)]
	switch st := &chat.Status; {
	case c == nil:
		return nil
	case st.Generation != nil:
		f := fence.Fence{ChatUID: string(chat.UID), HistoryVersion: st.History.Version, Attempt: st.Generation.Attempt}
		if k.paid[f] {
			return nil
		}
		k.paid[f] = true
		return chattest.Answer(chat, chattest.Says("Fine."))
	case st.Phase != v1beta1.ChatWaiting || int(st.History.Length) < 2*c.asked:
		return nil
	}
	c.answered = c.asked
	if k.silent || c.asked == k.most {
		return nil
	}
	c.asked++
	return chattest.In(chat.Namespace, chattest.User(chat.Name, fmt.Sprint("m", c.asked), chattest.Content("And now?")))
}

// turns are how many are over in each chat.
func (k *talk) turns() map[types.NamespacedName]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	turns := map[types.NamespacedName]int{}
	for key, c := range k.chats {
		turns[key] = c.answered
	}
	return turns
}

// comeFar waits until each chat has come so many turns further.
func (k *talk) comeFar(turns int) {
	k.t.Helper()
	before := k.turns()
	eventually(k.t, fmt.Sprintf("each chat comes %d turns further", turns), func() bool {
		for key, n := range k.turns() {
			if n < before[key]+turns {
				return false
			}
		}
		return true
	})
}

// fallSilent ends the talk, and waits until everything is answered and says so.
func (k *talk) fallSilent() {
	k.t.Helper()
	k.mu.Lock()
	k.silent = true
	k.mu.Unlock()
	eventually(k.t, "everything is answered", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, c := range k.chats {
			if c.answered < c.asked {
				return false
			}
		}
		return true
	})
	for key := range k.chats {
		eventually(k.t, "all messages say that they are answered", func() bool { return k.settled(key.Namespace) })
	}
}

// settled reports whether all messages of people in the namespace say that they are answered.
func (k *talk) settled(namespace string) bool {
	messages := messagesIn(k.t, namespace)
	for i := range messages {
		m := &messages[i]
		if m.Spec.Generation == nil && !ready(m.Status.Conditions) {
			return false
		}
	}
	return true
}

func ready(conditions []metav1.Condition) bool {
	for _, c := range conditions {
		if c.Type == v1beta1.ConditionReady {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

func messagesIn(t *testing.T, namespace string) []v1beta1.ChatMessage {
	t.Helper()
	var list v1beta1.ChatMessageList
	check.OK(t, cluster.Client.List(t.Context(), &list, client.InNamespace(namespace)))
	return list.Items
}

// check checks that each message was answered once, in its place, and that no model was asked twice for one.
func (k *talk) check() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	turns := 0
	for key, c := range k.chats {
		turns += c.asked
		var chat v1beta1.Chat
		if err := cluster.Client.Get(k.t.Context(), key, &chat); err != nil {
			k.t.Fatal(err)
		}
		history := historyOf(k.t, &chat)
		if len(history) != 2*c.asked || len(messagesIn(k.t, key.Namespace)) != 2*c.asked {
			k.t.Errorf("%s: %d messages are asked, and the history is %v", key, c.asked, history)
			continue
		}
		for i := range c.asked {
			if want := messageNamed(i + 1); history[2*i] != want {
				k.t.Errorf("%s: number %d of the history is %s, want %s", key, 2*i, history[2*i], want)
			}
		}
	}
	if len(k.paid) != turns {
		k.t.Errorf("for %d turns models were asked %d times", turns, len(k.paid))
	}
}

// messageNamed is the name of the message that people send as their nth.
func messageNamed(n int) string {
	if n == 1 {
		return "chat-prompt"
	}
	return fmt.Sprint("m", n)
}

// historyOf are the names of the messages in the chat's history, in their order.
func historyOf(t *testing.T, chat *v1beta1.Chat) (names []string) {
	t.Helper()
	parents := map[string]string{}
	for _, m := range messagesIn(t, chat.Namespace) {
		parents[m.Name] = m.Spec.Parent
		if m.Spec.Generation == nil {
			parents[m.Name] = m.Status.Parent
		}
	}
	for name := chat.Status.History.Head; name != ""; name = parents[name] {
		names = append([]string{name}, names...)
	}
	return names
}
