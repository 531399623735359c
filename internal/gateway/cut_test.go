// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

// edit gives a User message another content and begins its turn again, at the place that it has in its status.
func (c *conversation) edit(msg *v1alpha1.ChatMessage, content string) {
	c.in.t.Helper()
	msg.Spec.Content = content
	check.OK(c.in.t, cluster.Client.Update(c.in.t.Context(), msg))
	h := &c.chat.Status.History
	h.Version, h.Head, h.Length = h.Version+1, msg.Name, *msg.Status.Index+1
	c.chat.Status.Turn = &v1alpha1.TurnStatus{Message: msg.Name, Parent: msg.Status.Parent, Index: *msg.Status.Index,
		HistoryVersion: h.Version}
}

// texts are what the messages say, by the ids of their events, since the last reset.
func texts(t *testing.T, events []event) map[string]string {
	t.Helper()
	said := map[string]string{}
	for _, e := range events {
		switch e.Name {
		case stream.EventHistoryReset:
			clear(said)
		case stream.EventMessage:
			var m stream.MessageCommitted
			check.OK(t, json.Unmarshal([]byte(e.Data), &m))
			said[short(e.ID)] = m.Message.Content
			for _, part := range m.Message.Parts {
				if part.Text != nil {
					said[short(e.ID)] += *part.Text
				}
				if part.ToolResult != nil {
					said[short(e.ID)] += part.ToolResult.Output
				}
			}
		}
	}
	return said
}

func TestOldTextOfEditedMessageIsNotStreamed(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	l, away := in.listen("chat", "", 0), in.listen("chat", "", 0)
	q1 := c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.commit()
	c.settle(q1)
	l.waitID("1.1.1.1")
	c.finish(v1alpha1.RoleAssistant, "a b")
	c.commit()
	l.waitID("2.0.2")
	away.waitID("2.0.2")
	c.edit(q1, "what I meant")
	c.attempt(1)
	c.commit()
	c.settle(q1)
	c.finish(v1alpha1.RoleAssistant, "now I see")
	c.ask("q2", 4) // so that the chat's own status says nothing of q1
	c.commit()
	want := map[string]string{"3.0.1": "what I meant", "4.0.2": "now I see", "4.0.3": "question q2"}
	for name, events := range map[string][]event{
		"who was there":                         l.waitID("4.0.3"),
		"who comes now":                         in.listen("chat", "", 0).waitID("4.0.3"),
		"who comes back behind the reply":       in.listen("chat", "?lastEventId="+c.idOf("2.0.2"), 0).waitID("4.0.3"),
		"who comes back from within it":         in.listen("chat", "?lastEventId="+c.idOf("1.1.1.1"), 0).waitID("4.0.3"),
		"who comes back behind the question":    in.listen("chat", "?lastEventId="+c.idOf("1.0.1"), 0).waitID("4.0.3"),
		"who comes back behind what was edited": in.listen("chat", "?lastEventId="+c.idOf("3.0.1"), 0).waitID("4.0.3"),
	} {
		want, resets := want, 1
		if name == "who comes now" {
			resets = 0
		}
		if name == "who comes back behind what was edited" {
			want, resets = map[string]string{"4.0.2": "now I see", "4.0.3": "question q2"}, 0
		}
		check.Equal(t, name, want, texts(t, events))
		got := 0
		for _, e := range events {
			if e.Name == stream.EventHistoryReset {
				got++
			}
		}
		if got != resets {
			t.Errorf("%s: %d resets, want %d", name, got, resets)
		}
	}
}

// results creates a client's results and puts them at the head.
func (c *conversation) results(output string) *v1alpha1.ChatMessage {
	msg := &v1alpha1.ChatMessage{ObjectMeta: c.in.meta("results"), Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: c.chat.Name}, Role: v1alpha1.RoleTool,
		Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartToolResult,
			ToolResult: &v1alpha1.ToolResult{ID: "call_1", Output: output}}}}}
	c.in.create(msg)
	h := &c.chat.Status.History
	c.chat.Status.Internal.Turn.Results = &v1alpha1.ClientResults{Message: msg.Name, Position: h.Length}
	c.chat.Status.Internal.Tail = []v1alpha1.CommittedMessage{{Message: msg.Name, UID: string(msg.UID), Parent: h.Head,
		Position: h.Length, HistoryVersion: h.Version + 1}}
	h.Version, h.Head, h.Length = h.Version+1, msg.Name, h.Length+1
	c.chat.Status.Phase, c.chat.Status.RequiresAction = v1alpha1.ChatRunning, nil
	return msg
}

// wantTicket lets the turn wait for a client.
func (c *conversation) wantTicket() {
	c.chat.Status.Phase = v1alpha1.ChatRequiresAction
	c.chat.Status.RequiresAction = &v1alpha1.RequiresActionStatus{Deadline: metav1.Now(),
		ToolCalls: []v1alpha1.PendingToolCall{
			{ID: "call_1", Name: "open_ticket", Input: `{"title":"CNI down"}`, Kind: v1alpha1.RequiresClient}}}
}

func TestRecreatedResultIsToldAnew(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	l := in.listen("chat", "", 0)
	c.settle(c.ask("q1", 1))
	c.attempt(1)
	c.finish(v1alpha1.RoleAssistant, "a ticket, please")
	c.wantTicket()
	c.commit()
	action := l.waitName(stream.EventRequiresAction)
	if got := action[len(action)-1].Data; !strings.Contains(got, `"historyVersion":2`) ||
		!strings.Contains(got, `"input":"{\"title\":\"CNI down\"}"`) {
		t.Errorf("action %s", got)
	}
	old := c.results("4711")
	c.commit()
	l.waitID("3.0.3")
	check.OK(t, cluster.Client.Delete(t.Context(), old))
	h := &c.chat.Status.History
	h.Version, h.Head, h.Length = 4, "chat-1-1", 2
	c.chat.Status.Internal.Turn.Results = nil
	c.wantTicket()
	c.commit()
	c.results("4712")
	c.commit()
	want := map[string]string{"1.0.1": "question q1", "2.0.2": "a ticket, please", "5.0.3": "4712"}
	for name, events := range map[string][]event{
		"who was there": l.waitID("5.0.3"), "who comes now": in.listen("chat", "", 0).waitID("5.0.3"),
	} {
		check.Equal(t, name, want, texts(t, events))
	}
}
