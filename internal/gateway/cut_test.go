// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// edit gives a User message another content and begins its turn again, at the place that it has in its status.
func (c *conversation) edit(msg *v1beta1.ChatMessage, content string) {
	c.in.t.Helper()
	msg.Spec.Content = content
	check.OK(c.in.t, cluster.Client.Update(c.in.t.Context(), msg))
	h := &c.chat.Status.History
	h.Version, h.Head, h.Length = h.Version+1, msg.Name, *msg.Status.Index+1
	c.chat.Status.Turn = &v1beta1.TurnStatus{Message: msg.Name, Parent: msg.Status.Parent, Index: *msg.Status.Index,
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
	c.finish(v1beta1.RoleAssistant, "a b")
	c.commit()
	l.waitID("2.0.2")
	away.waitID("2.0.2")
	c.edit(q1, "what I meant")
	c.attempt(1)
	c.commit()
	c.settle(q1)
	c.finish(v1beta1.RoleAssistant, "now I see")
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
		check.Equal(t, name, resets, got)
	}
}
