// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

func (w *world) newChat(name, prompt string) *v1beta1.Chat {
	w.t.Helper()
	chat := &v1beta1.Chat{ObjectMeta: w.meta(name), Spec: v1beta1.ChatSpec{Prompt: prompt}}
	w.create(chat)
	return chat
}

func (w *world) say(chat, name, text string) {
	w.t.Helper()
	w.create(&v1beta1.ChatMessage{ObjectMeta: w.meta(name), Spec: v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: chat}, Content: text,
	}})
}

func (w *world) chat(name string) *v1beta1.Chat {
	w.t.Helper()
	var chat v1beta1.Chat
	if err := c.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, &chat); err != nil {
		w.t.Fatalf("reading chat %s: %v", name, err)
	}
	return &chat
}

// ready waits until the chat is Ready with as many messages.
func (w *world) ready(name string, length int64) *v1beta1.Chat {
	w.t.Helper()
	var chat *v1beta1.Chat
	w.describeFailure()
	whileMoving(w.t, fmt.Sprintf("chat %s is Ready with %d messages", name, length), func() (bool, int64) {
		chat = w.chat(name)
		return meta.IsStatusConditionTrue(chat.Status.Conditions, v1beta1.ConditionReady) &&
			chat.Status.History.Length == length, chat.Status.History.Version
	})
	return chat
}

// stalled waits until a person is needed, and returns why.
func (w *world) stalled(name string) *metav1.Condition {
	w.t.Helper()
	var condition *metav1.Condition
	w.eventually("chat "+name+" is Stalled", func() bool {
		condition = meta.FindStatusCondition(w.chat(name).Status.Conditions, v1beta1.ConditionStalled)
		return condition != nil
	})
	return condition
}

// eventually waits until the condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	w.describeFailure()
	eventually(w.t, what, condition)
}

// describeFailure shows the chats if the test fails.
func (w *world) describeFailure() {
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Log(w.describe())
		}
	})
}

func (w *world) describe() string {
	var chats v1beta1.ChatList
	ctx := context.WithoutCancel(w.t.Context()) // It has ended where the test cleans up.
	if err := c.List(ctx, &chats, client.InNamespace(w.ns)); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range chats.Items {
		fmt.Fprintf(&b, "%s: %+v\n", chats.Items[i].Name, chats.Items[i].Status)
	}
	return b.String()
}

// history is the committed chain, oldest first. It fails the test if the chain is not whole.
func (w *world) history(name string) []v1beta1.ChatMessage {
	w.t.Helper()
	chat := w.chat(name)
	ref, byName := history.RefOf(chat), map[string]v1beta1.ChatMessage{}
	nodes, err := history.Walk(ref, func(at string) (history.Node, bool) {
		var m v1beta1.ChatMessage
		if err := c.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: at}, &m); err != nil {
			w.t.Fatalf("message %s of the history: %v", at, err)
		}
		byName[at] = m
		return history.NodeOf(&m), true
	}, nil)
	if err != nil {
		w.t.Fatalf("the history of chat %s: %v", name, err)
	}
	var chain []v1beta1.ChatMessage
	for _, n := range nodes {
		chain = append(chain, byName[n.Name])
	}
	return chain
}

func text(m *v1beta1.ChatMessage) string {
	b := strings.Builder{}
	b.WriteString(m.Spec.Content)
	for _, part := range m.Spec.Parts {
		if part.Type == v1beta1.PartText {
			b.WriteString(*part.Text)
		}
	}
	return b.String()
}

// nothingLeft checks that the namespace holds no message that is not part of a history.
func (w *world) nothingLeft(chat string) {
	w.t.Helper()
	known := map[string]bool{}
	for _, m := range w.history(chat) {
		known[m.Name] = true
	}
	eventually(w.t, "no message is left over", func() bool {
		var all v1beta1.ChatMessageList
		if err := c.List(w.t.Context(), &all, client.InNamespace(w.ns),
			client.MatchingFields{"spec.chatRef.name": chat}); err != nil {
			return false
		}
		return len(all.Items) == len(known)
	})
}

// sample creates what a file of config/samples describes, with the images of this cluster. Its Chats it returns, for
// the test to create them.
func (w *world) sample(path ...string) (chats []*unstructured.Unstructured) {
	w.t.Helper()
	raw, err := os.ReadFile(testcluster.Path(append([]string{"config", "samples"}, path...)...))
	check.OK(w.t, err)
	ours := strings.NewReplacer("busybox:1.37", toolbox, "parley.dev/parley:dev", image)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(ours.Replace(string(raw))), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return chats
		} else if err != nil {
			w.t.Fatal(err)
		}
		object.SetNamespace(w.ns)
		if object.GetKind() == "Chat" {
			chats = append(chats, object)
			continue
		}
		w.create(object)
	}
}
