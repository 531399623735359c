// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
)

// chatName is the name of the chat in every scenario, subChatName that of its sub-chat, if it has one.
const (
	chatName    = "c"
	subChatName = "sub"
)

// snapshot is all that is in a namespace at one time.
type snapshot struct {
	// chat of the scenario; nil if it does not exist.
	chat *v1beta1.Chat
	// messages by name.
	messages []v1beta1.ChatMessage
	// sub is the same of the chat's sub-chat; nil if there is none.
	sub *snapshot
	// pods are the generation pods; only a snapshot from the API server has them.
	pods []corev1.Pod
}

// read reads chat and messages of the namespace.
func read(ctx context.Context, from client.Reader, ns string) (*snapshot, error) {
	var chats v1beta1.ChatList
	var messages v1beta1.ChatMessageList
	for _, list := range []client.ObjectList{&chats, &messages} {
		if err := from.List(ctx, list, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("reading namespace %s: %w", ns, err)
		}
	}
	slices.SortFunc(messages.Items, func(a, b v1beta1.ChatMessage) int { return strings.Compare(a.Name, b.Name) })
	s := of(chatName, chats.Items, messages.Items)
	if sub := of(subChatName, chats.Items, messages.Items); sub.chat != nil || len(sub.messages) > 0 {
		s.sub = sub
	}
	return s, nil
}

// of is what there is of one chat.
func of(name string, chats []v1beta1.Chat, messages []v1beta1.ChatMessage) *snapshot {
	s := &snapshot{}
	for i := range chats {
		if chats[i].Name == name {
			s.chat = &chats[i]
		}
	}
	for i := range messages {
		if messages[i].Spec.ChatRef.Name == name {
			s.messages = append(s.messages, messages[i])
		}
	}
	return s
}

// readAll reads everything of the namespace from the API server.
func readAll(ctx context.Context, ns string) (*snapshot, error) {
	s, err := read(ctx, cluster.Client, ns)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := cluster.Client.List(ctx, &pods, client.InNamespace(ns)); err != nil {
		return nil, fmt.Errorf("reading the pods of namespace %s: %w", ns, err)
	}
	s.pods = pods.Items
	return s, nil
}

// versions is which write of each object the snapshot shows.
func (s *snapshot) versions() string {
	var b strings.Builder
	if s.chat != nil {
		fmt.Fprintln(&b, "chat", s.chat.UID, s.chat.ResourceVersion)
	}
	for i := range s.messages {
		fmt.Fprintln(&b, "message", s.messages[i].Name, s.messages[i].ResourceVersion)
	}
	for i := range s.pods {
		fmt.Fprintln(&b, "pod", s.pods[i].Name, s.pods[i].ResourceVersion)
	}
	if s.sub != nil {
		b.WriteString(s.sub.versions())
	}
	return b.String()
}

func (s *snapshot) message(name string) *v1beta1.ChatMessage {
	for i := range s.messages {
		if s.messages[i].Name == name {
			return &s.messages[i]
		}
	}
	if s.sub != nil {
		return s.sub.message(name)
	}
	return nil
}

// chain is the chat's history, oldest first.
func (s *snapshot) chain() ([]history.Node, error) {
	if s.chat == nil {
		return nil, nil
	}
	ref := history.Ref{Head: s.chat.Status.History.Head, Length: s.chat.Status.History.Length}
	return history.Walk(ref, func(name string) (history.Node, bool) {
		m := s.message(name)
		if m == nil {
			return history.Node{}, false
		}
		return nodeOf(m), true
	}, nil)
}

// nodeOf is the message where it says that it stands itself: at rest the chat's word is not needed.
func nodeOf(m *v1beta1.ChatMessage) history.Node {
	n := history.NodeOf(m)
	n.Placed = n.Placed && (m.Spec.Generation != nil || m.Status.State == v1beta1.MessageCommitted)
	return n
}

// strays are the generated messages that are not in the history.
func (s *snapshot) strays(chain []history.Node) []string {
	var out []string
	for i := range s.messages {
		name := s.messages[i].Name
		if s.messages[i].Spec.Generation != nil &&
			!slices.ContainsFunc(chain, func(n history.Node) bool { return n.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

// render is the end state in words, the same for every run that ends the same.
func (s *snapshot) render() string {
	var b strings.Builder
	chain, err := s.chain()
	if s.chat == nil {
		fmt.Fprintln(&b, "chat: none")
	} else {
		fmt.Fprintln(&b, "chat:")
		renderStatus(&b, &s.chat.Status)
	}
	if err != nil {
		fmt.Fprintln(&b, "the history is not whole:", err)
	}
	fmt.Fprintln(&b, "history, newest first:")
	for _, n := range slices.Backward(chain) {
		m := s.message(n.Name)
		fmt.Fprintf(&b, "  %s: %s\n", m.Spec.Role, content(m))
	}
	for i := range s.messages {
		if m := &s.messages[i]; m.Spec.Generation == nil {
			fmt.Fprintf(&b, "message %s:\n", m.Name)
			renderStatus(&b, &m.Status)
		}
	}
	if s.sub != nil {
		b.WriteString("sub-" + s.sub.render())
	}
	return b.String()
}

// volatile are the fields of a status that differ between runs that end the same, by the name that they have anywhere.
var volatile = []string{
	"head", "parent", "version", "historyVersion", "attempt", "pod", "time", "startedAt", "interruptedAt", "deadline",
	"lastTransitionTime", "observedGeneration", "chatUID", "parentUID", "uid", "messageUID",
	"callingMessage",
	"idleSince", "expiresAt",
}

// renderStatus is a status without its volatile fields. What is added to the API is compared unless it is named there.
func renderStatus(b *strings.Builder, status any) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		fmt.Fprintln(b, "cannot be rendered:", err)
		return
	}
	for _, field := range slices.Sorted(maps.Keys(content)) {
		if slices.Contains(volatile, field) {
			continue
		}
		text, err := json.Marshal(steady(content[field]))
		if err != nil {
			fmt.Fprintln(b, "cannot be rendered:", err)
			continue
		}
		fmt.Fprintf(b, "  %s: %s\n", field, text)
	}
}

// steady is the value without volatile fields. Conditions are sorted, for their order says how they came.
func steady(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, field := range v {
			if !slices.Contains(volatile, name) {
				out[name] = steady(field)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, element := range v {
			out = append(out, steady(element))
		}
		slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(conditionType(a), conditionType(b)) })
		return out
	}
	return value
}

func conditionType(element any) string {
	fields, ok := element.(map[string]any)
	if !ok {
		return ""
	}
	name, _, _ := unstructured.NestedString(fields, "type")
	return name
}

// content is what a message says, in short.
func content(m *v1beta1.ChatMessage) string {
	words := []string{}
	if m.Spec.Content != "" {
		words = append(words, m.Spec.Content)
	}
	for _, p := range m.Spec.Parts {
		switch {
		case p.Text != nil:
			words = append(words, *p.Text)
		case p.ToolCall != nil:
			words = append(words, "calls "+p.ToolCall.ID)
		case p.ToolResult != nil:
			words = append(words, "answers "+p.ToolResult.ID+" with "+p.ToolResult.Output)
		}
	}
	return strings.Join(words, ", ")
}

func ready(all []metav1.Condition) metav1.Condition {
	if c := meta.FindStatusCondition(all, v1beta1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}
