// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// story writes what the manager and a generation pod would of one chat.
type story struct {
	t    testing.TB
	w    *world
	chat *v1beta1.Chat
	pod  *pod // that has its attempts
}

// tell begins a chat that has so many messages, of people and the model in turn.
func (w *world) tell(name string, messages int) *story {
	w.t.Helper()
	s := &story{t: w.t, w: w, pod: w.pods[0], chat: chattest.In(w.namespace, chattest.Chat(name))}
	cluster.Create(w.t, s.chat)
	s.extend(messages)
	return s
}

// extend commits so many messages more, in one write.
func (s *story) extend(messages int) {
	s.t.Helper()
	h := &s.chat.Status.History
	made := make([]*v1beta1.ChatMessage, 0, messages)
	for range messages {
		if h.Length%2 == 0 {
			made = append(made, s.question(fmt.Sprintf("Question %d?", h.Length)))
		} else {
			made = append(made, s.answer(chattest.Says(fmt.Sprintf("Answer %d, **at length**:\n\n- one\n- two\n", h.Length))))
		}
	}
	write(s.t, made)
	s.chat.Status.Phase = v1beta1.ChatWaiting
	s.commit()
}

// question is what a person says next.
func (s *story) question(text string) *v1beta1.ChatMessage {
	h := &s.chat.Status.History
	m := chattest.In(s.chat.Namespace, chattest.User(s.chat.Name, fmt.Sprintf("%s-q%d", s.chat.Name, h.Length),
		chattest.Content(text)))
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, ChatUID: string(s.chat.UID), Parent: h.Head,
		Index: new(h.Length), HistoryVersion: h.Version + 1}
	s.chat.Status.Turn = &v1beta1.TurnStatus{Message: m.Name, Parent: h.Head, Index: h.Length,
		HistoryVersion: h.Version + 1}
	h.Version, h.Head, h.Length = h.Version+1, m.Name, h.Length+1
	return m
}

// answer is what the model says next.
func (s *story) answer(replies ...chattest.Reply) *v1beta1.ChatMessage {
	h := &s.chat.Status.History
	s.chat.Status.Generation = s.generation()
	m := chattest.Answer(s.chat, replies...)
	s.chat.Status.Generation = nil
	h.Version, h.Head, h.Length = h.Version+1, m.Name, h.Length+1
	return m
}

func (s *story) generation() *v1beta1.GenerationStatus {
	return &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: s.pod.name,
		ModelConfig: "default", StartedAt: metav1.NowMicro()}
}

func (s *story) commit() {
	s.t.Helper()
	check.OK(s.t, cluster.Client.Status().Update(s.t.Context(), s.chat))
}

// attempt begins a reply whose parts are streamed.
func (s *story) attempt() *publish.Episode {
	s.t.Helper()
	s.chat.Status.Phase, s.chat.Status.Generation = v1beta1.ChatRunning, s.generation()
	episode, err := s.pod.generator.Open(s.t.Context(), fence.Fence{ChatUID: string(s.chat.UID),
		HistoryVersion: s.chat.Status.History.Version, Attempt: 1})
	check.OK(s.t, err)
	s.commit()
	return episode
}

// write creates messages, several at a time, with their status.
func write(t testing.TB, messages []*v1beta1.ChatMessage) {
	t.Helper()
	queue := make(chan *v1beta1.ChatMessage)
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			for m := range queue {
				status := m.Status
				err := cluster.Client.Create(t.Context(), m)
				if err == nil && m.Spec.Generation == nil {
					m.Status = status
					err = cluster.Client.Status().Update(t.Context(), m)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, m := range messages {
		queue <- m
	}
	close(queue)
	writing.Wait()
}
