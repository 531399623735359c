// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// conversation writes a chat's status as the reconciler would, and speaks as its generator would.
type conversation struct {
	in      *installation
	chat    *v1beta1.Chat
	episode *publish.Episode
}

func (in *installation) converse(name string) *conversation {
	in.t.Helper()
	c := &conversation{in: in, chat: chattest.In(in.namespace, chattest.Chat(name))}
	in.create(c.chat)
	return c
}

// commit writes the chat's status: one write, as the reconciler would.
func (c *conversation) commit() {
	c.in.t.Helper()
	check.OK(c.in.t, cluster.Client.Status().Update(c.in.t.Context(), c.chat))
}

// ask creates a User message and puts it at the head; version says whether that is a commit of its own.
func (c *conversation) ask(name string, version int64) *v1beta1.ChatMessage {
	msg := chattest.In(c.in.namespace, chattest.User(c.chat.Name, name, chattest.Content("question "+name)))
	c.in.create(msg)
	h := &c.chat.Status.History
	c.chat.Status.Turn = &v1beta1.TurnStatus{Message: name, Parent: h.Head, Index: h.Length, HistoryVersion: version}
	h.Version, h.Head, h.Length = version, name, h.Length+1
	c.chat.Status.LastError = nil
	return msg
}

// settle writes the status of the turn's message, as the reconciler does off the hot path.
func (c *conversation) settle(msg *v1beta1.ChatMessage) {
	c.in.t.Helper()
	turn := c.chat.Status.Turn
	msg.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, ChatUID: string(c.chat.UID),
		Parent: turn.Parent, Index: &turn.Index, HistoryVersion: turn.HistoryVersion}
	check.OK(c.in.t, cluster.Client.Status().Update(c.in.t.Context(), msg))
}

// attempt assigns an attempt and opens its episode.
func (c *conversation) attempt(n int32) {
	c.in.t.Helper()
	c.chat.Status.Phase = v1beta1.ChatRunning
	c.chat.Status.Generation = &v1beta1.GenerationStatus{Attempt: n, Action: v1beta1.ActionGenerateAssistant,
		Pod: "pod-1", ModelConfig: "default", StartedAt: metav1.NowMicro()}
	ep := fence.Fence{ChatUID: string(c.chat.UID), HistoryVersion: c.chat.Status.History.Version, Attempt: n}
	var err error
	if c.episode, err = c.in.generator.Open(c.in.t.Context(), ep); err != nil {
		c.in.t.Fatal(err)
	}
	episode := c.episode
	c.in.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = episode.Close(ctx) // the relay may be gone by now
	})
}

func (c *conversation) say(texts ...string) {
	for _, text := range texts {
		c.episode.Publish("Assistant", parts.Part{Type: parts.Text, ID: "0", Text: text})
	}
}

// finish creates what the attempt under way yielded and puts it at the head.
func (c *conversation) finish(role v1beta1.MessageRole, text string) {
	h, g := &c.chat.Status.History, c.chat.Status.Generation
	if role == v1beta1.RoleTool {
		g.Action = v1beta1.ActionExecuteTools
	}
	msg := chattest.Answer(c.chat, chattest.Says(text))
	c.in.create(msg)
	h.Version, h.Head, h.Length = h.Version+1, msg.Name, h.Length+1
	c.chat.Status.Generation = nil
	c.chat.Status.Phase = v1beta1.ChatWaiting
}
