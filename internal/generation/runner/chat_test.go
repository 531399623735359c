// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// conversation plays the reconciler for one chat: it alone writes the chat's status.
type conversation struct {
	*pod
	chat *v1alpha1.Chat
	// config is the name of the ChatModelConfig that attempts use.
	config string
}

func (p *pod) newChat(name string, change func(*v1alpha1.ChatSpec)) *conversation {
	p.t.Helper()
	chat := chattest.In(p.ns, chattest.Chat(name))
	if change != nil {
		change(&chat.Spec)
	}
	create(p.t, chat)
	return &conversation{p, chat, "default"}
}

// write changes the chat's status.
func (c *conversation) write(change func(*v1alpha1.ChatStatus)) {
	c.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := cluster.Client.Get(c.t.Context(), client.ObjectKeyFromObject(c.chat), c.chat); err != nil {
			return err
		}
		change(&c.chat.Status)
		return cluster.Client.Status().Update(c.t.Context(), c.chat)
	})
	if err != nil {
		c.t.Fatalf("writing the status of chat %s: %v", c.chat.Name, err)
	}
}

// has gives the chat a class of that name, as the operator would decide.
func (c *conversation) has(name string, change func(*v1alpha1.ChatClassSpec)) *v1alpha1.ChatClass {
	c.t.Helper()
	class := chattest.In(c.ns, chattest.Class(name, change))
	create(c.t, class)
	c.write(func(s *v1alpha1.ChatStatus) {
		s.ChatClass = &v1alpha1.ChatClassInForce{Name: name, UID: string(class.UID), Generation: class.Generation}
	})
	return class
}

// say creates a User message without assigning the chat.
func (c *conversation) say(name, text string) {
	c.t.Helper()
	m := chattest.In(c.ns, chattest.User(c.chat.Name, name, chattest.Content(text)))
	create(c.t, m)
	// The pod reads a message once more if the API server's own cache is late, and tests count requests.
	fromCache := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}
	c.eventually("the API server's cache has the message", func() bool {
		cached := &v1alpha1.ChatMessage{}
		err := cluster.Client.Get(c.t.Context(), client.ObjectKeyFromObject(m), cached, fromCache)
		return err == nil && cached.UID == m.UID
	})
}

// ask creates a User message, begins a turn with it and assigns the chat, changing its status in the same write. The
// message's own status stays unwritten.
func (c *conversation) ask(name, text string, change ...func(*v1alpha1.ChatStatus)) {
	c.t.Helper()
	c.say(name, text)
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: name, Parent: s.History.Head, Index: s.History.Length}
		s.Internal.Turn.ContentHash = hashOf(text)
		s.History = v1alpha1.HistoryStatus{Version: s.History.Version + 1, Head: name, Length: s.History.Length + 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
		for _, change := range change {
			change(s)
		}
	})
}

// settle writes the status of the turn's message, as the reconciler does before it begins another turn.
func (c *conversation) settle() {
	c.t.Helper()
	turn := c.chat.Status.Turn
	m := c.message(turn.Message)
	m.Status.State, m.Status.Parent, m.Status.Index = v1alpha1.MessageCommitted, turn.Parent, &turn.Index
	check.OK(c.t, cluster.Client.Status().Update(c.t.Context(), m))
}

// hashOf is the hash of a message that says the text.
func hashOf(text string) string { return content.Hash(&v1alpha1.ChatMessageSpec{Content: text}) }

func (c *conversation) assignment(action v1alpha1.GenerationAction, attempt int32) *v1alpha1.GenerationStatus {
	return &v1alpha1.GenerationStatus{Attempt: attempt, Action: action, Pod: c.name, ModelConfig: c.config,
		StartedAt: metav1.NowMicro()}
}

// commit makes the message the head, with an action to follow or none.
func (c *conversation) commit(m *v1alpha1.ChatMessage, next v1alpha1.GenerationAction) {
	c.t.Helper()
	c.write(func(s *v1alpha1.ChatStatus) {
		s.History = v1alpha1.HistoryStatus{Version: s.History.Version + 1, Head: m.Name, Length: s.History.Length + 1}
		s.Generation = nil
		if next != "" {
			s.Generation = c.assignment(next, 1)
		}
	})
}

// fence is that of the attempt under way.
func (c *conversation) fence() fence.Fence {
	return attempts.Of(c.chat.UID, &c.chat.Status)
}

// resultName is the name of the result of the attempt under way.
func (c *conversation) resultName() string {
	return c.fence().ResultName(c.chat.Name)
}

// message reads a message; nil if it does not exist.
func (p *pod) message(name string) *v1alpha1.ChatMessage {
	p.t.Helper()
	if m := chattest.In(p.ns, &v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: name}}); p.read(m) {
		return m
	}
	return nil
}

// read reads the object, and reports whether it exists.
func (p *pod) read(o client.Object) bool {
	p.t.Helper()
	err := cluster.Client.Get(p.t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		p.t.Fatalf("reading %s: %v", o.GetName(), err)
	}
	return err == nil
}

// result waits for the result of the attempt under way.
func (c *conversation) result() *v1alpha1.ChatMessage {
	c.t.Helper()
	var m *v1alpha1.ChatMessage
	c.eventually("message "+c.resultName()+" exists", func() bool {
		m = c.message(c.resultName())
		return m != nil && m.Spec.Generation.ChatUID == string(c.chat.UID)
	})
	return m
}

// ended waits for the result, and checks its outline.
func (c *conversation) ended(want string) *v1alpha1.ChatMessage {
	c.t.Helper()
	m := c.result()
	g := m.Spec.Generation
	got := string(g.Outcome)
	if g.Error != nil {
		got += " " + string(g.Error.Reason)
	}
	if len(m.Spec.Parts) > 0 {
		got += ": " + m.Spec.Text()
	}
	check.Equal(c.t, "how "+m.Name+" ended", want, got)
	return m
}

// label edits a label of the chat, so that the watch reports it once more.
func (c *conversation) label(value string) {
	c.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"edited":%q}}}`,
		value))
	check.OK(c.t, cluster.Client.Patch(c.t.Context(), c.chat, patch))
}

// settled asks a chat of its own for an answer: what the pod was told before has been looked at by then.
func (p *pod) settled() {
	p.t.Helper()
	c := p.newChat("settled-"+fmt.Sprint(time.Now().UnixNano()), nil)
	c.ask(c.chat.Name+"-u", "settled?")
	c.result()
}

// lastBody is the newest request that the model got.
func (p *pod) lastBody() string {
	requests := p.models.Requests()
	return string(requests[len(requests)-1].Body)
}

func interrupt(s *v1alpha1.ChatStatus) { s.Phase = v1alpha1.ChatInterrupting }
