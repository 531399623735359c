// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realpod"
	"parley.dev/parley/test/modelserver"
)

const chats = 6

// talk is people who say the next thing as soon as they are answered, each in a chat.
type talk struct {
	t         *testing.T
	namespace string
	model     *modelserver.Server
	talking   sync.WaitGroup
	silent    atomic.Bool

	mu sync.Mutex
	// asked are how many messages were sent in each chat, and answered how many turns are over.
	asked, answered [chats]int
}

// newTalk begins to talk.
func newTalk(t *testing.T) *talk {
	t.Helper()
	k := &talk{t: t, namespace: cluster.Namespace(t, "outage")}
	model, err := modelserver.New(modelserver.Always(modelserver.Reply{
		DelayBetween: modelserver.Duration(50 * time.Millisecond),
		Steps:        []modelserver.Step{modelserver.Say(slices.Repeat([]string{"word "}, 10)...)}}))
	check.OK(t, err)
	k.model = model
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	cluster.Create(t, chattest.In(k.namespace, chattest.Config("default", chattest.Default,
		func(s *v1beta1.ChatModelConfigSpec) { s.BaseURL = server.URL + "/v1" })))
	for i := range chats {
		cluster.Create(t, chattest.In(k.namespace, chattest.Chat(chatNamed(i))))
	}
	for i := range chats {
		k.talking.Go(func() { k.converse(i) })
	}
	t.Cleanup(k.talking.Wait) // It ends with the test's context.
	return k
}

func chatNamed(i int) string { return fmt.Sprint("chat-", i) }

// startPod does the work of the generation pod that the manager creates.
func (k *talk) startPod(n *network) {
	k.t.Helper()
	var pods corev1.PodList
	eventually(k.t, "there is a generation pod", func() bool {
		check.OK(k.t, cluster.Client.List(k.t.Context(), &pods, client.InNamespace(k.namespace)))
		return len(pods.Items) == 1
	})
	pod := &pods.Items[0]
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Now()}}
	check.OK(k.t, cluster.Client.Status().Update(k.t.Context(), pod))
	realpod.Run(k.t, n.config(), k.namespace, pod.Name)
}

// converse says one thing after another.
func (k *talk) converse(i int) {
	for turn := 1; !k.silent.Load() && k.t.Context().Err() == nil; turn++ {
		name := fmt.Sprintf("%s-m%d", chatNamed(i), turn)
		k.count(&k.asked, i)
		k.say(chattest.User(chatNamed(i), name, chattest.Content("And now?")))
		k.await(i, name)
		k.count(&k.answered, i)
	}
}

func (k *talk) count(in *[chats]int, i int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	in[i]++
}

// say creates a message, as often as it takes.
func (k *talk) say(m *v1beta1.ChatMessage) {
	_, err := retry.Do(k.t.Context(), retry.APIServer, func(ctx context.Context) (any, error) {
		return nil, client.IgnoreAlreadyExists(cluster.Client.Create(ctx, chattest.In(k.namespace, m.DeepCopy())))
	})
	if err != nil && k.t.Context().Err() == nil {
		k.t.Error(err)
	}
}

// await waits until the turn of a message is over.
func (k *talk) await(i int, message string) {
	for key := (client.ObjectKey{Namespace: k.namespace, Name: chatNamed(i)}); k.t.Context().Err() == nil; {
		var chat v1beta1.Chat
		err := cluster.Client.Get(k.t.Context(), key, &chat) // Another try may succeed.
		if turn := chat.Status.Turn; err == nil && turn != nil && turn.Message == message && turn.Result != "" {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// comeFar waits until each chat has come so many turns further.
func (k *talk) comeFar(turns int) {
	k.t.Helper()
	read := func() [chats]int {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.answered
	}
	before := read()
	eventually(k.t, fmt.Sprintf("each chat comes %d turns further", turns), func() bool {
		for i, n := range read() {
			if n < before[i]+turns {
				return false
			}
		}
		return true
	})
}

// end ends the talk, and checks that each message was answered once, in its place, by one call of the model.
func (k *talk) end() {
	k.t.Helper()
	k.silent.Store(true)
	k.talking.Wait()
	turns := 0
	for i := range chats {
		turns += k.asked[i]
		check.Equal(k.t, "history of "+chatNamed(i), 2*k.asked[i], k.walk(chatNamed(i)))
	}
	calls := k.model.Requests()
	check.Equal(k.t, "calls of the model", turns, len(calls))
	for _, c := range calls {
		if c.Status != 200 || c.Aborted {
			k.t.Errorf("a call has status %d, aborted: %v", c.Status, c.Aborted)
		}
	}
}

// walk is the number of messages in the history of a chat, which must have all of them, a reply behind each message.
func (k *talk) walk(name string) int {
	k.t.Helper()
	var chat v1beta1.Chat
	check.OK(k.t, cluster.Client.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, &chat))
	var list v1beta1.ChatMessageList
	check.OK(k.t, cluster.Client.List(k.t.Context(), &list, client.InNamespace(k.namespace),
		client.MatchingFields{"spec.chatRef.name": name}))
	byName := map[string]*v1beta1.ChatMessage{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	nodes, err := history.Walk(history.RefOf(&chat), func(name string) (history.Node, bool) {
		m := byName[name]
		if m == nil {
			return history.Node{}, false
		}
		return history.NodeOf(m), true
	}, nil)
	check.OK(k.t, err)
	check.Equal(k.t, "messages of "+name, len(nodes), len(byName))
	for i, n := range nodes {
		want := fmt.Sprintf("%s-m%d", name, i/2+1)
		if isReply := byName[n.Name].Spec.Generation != nil; isReply != (i%2 == 1) || !isReply && n.Name != want {
			k.t.Errorf("number %d of %s is %s", i, name, n.Name)
		}
	}
	return len(nodes)
}
