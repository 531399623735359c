// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// turn is what a person could interrupt, and what waits for its turn.
type turn struct {
	// sent is the last message until the chat has committed or queued it: statuses before that are of the time before.
	sent string
	// open holds the messages that the chat has neither committed nor queued nor refused.
	open []openMessage
	// withdrawn holds messages that the person deletes: that they are gone is no news.
	withdrawn map[string]bool
	// working is true while the status has a turn under way, and stopped while the chat begins none.
	working, stopped bool
	// name is the message whose turn it is, or the last one was.
	name string
}

// isOver reports whether the turn that was under way before is over.
func (t *turn) isOver(before turn) bool {
	return before.working && (!t.working || t.name != before.name)
}

type openMessage struct{ name, text string }

// busy reports whether there is something to interrupt.
func (t *turn) busy() bool { return t.working || t.sent != "" }

// forget notes that the chat has the message, or refuses it.
func (t *turn) forget(message string) {
	if t.sent == message {
		t.sent = ""
	}
	t.open = slices.DeleteFunc(t.open, func(m openMessage) bool { return m.name == message })
}

func (t *turn) observe(u client.Update) {
	switch u := u.(type) {
	case *stream.MessageCommitted:
		if t.sent == u.Message.Name { // The status follows.
			t.working, t.name = true, u.Message.Name
		}
		t.forget(u.Message.Name)
	case *stream.QueueUpdate:
		for _, waits := range u.Queue {
			t.forget(waits.Name)
		}
	case *stream.Status:
		t.working = u.Ready == metav1.ConditionUnknown
		t.stopped = u.Wait != nil && (u.Ready == metav1.ConditionFalse || u.Wait.For == v1beta1.WaitForUnarchive)
		t.name = u.Turn
	}
}

// echo returns the items of the messages that the chat does not have yet.
func (t *turn) echo() (items []*item) {
	for _, m := range t.open {
		lines := []string{""}
		for line := range strings.SplitSeq(terminal.Unmarked(printable.Escape(m.text)), "\n") {
			lines = append(lines, terminal.Mark+"> "+line)
		}
		if t.stopped {
			lines[len(lines)-1] += " [waits]"
		}
		items = append(items, &item{own: lines})
	}
	return items
}

// maxOpen is the most messages of earlier that are awaited, each with a watch.
const maxOpen = 20

// readOpen reads the messages that a chat which begins no turn has not taken.
func readOpen(ctx context.Context, actions Chat) tea.Cmd {
	return func() tea.Msg {
		open, err := actions.Open(ctx)
		if err != nil {
			return outcome{err: err}
		}
		return open[:min(len(open), maxOpen)]
	}
}

// showOpen shows the messages that were read, and awaits them.
func showOpen(m *model, read []v1beta1.ChatMessage) tea.Cmd {
	var older []openMessage
	var awaited []tea.Cmd
	known := map[string]bool{}
	for _, o := range m.turn.open {
		known[o.name] = true
	}
	for _, q := range m.transcript.chat.Queue {
		known[q.Name] = true
	}
	for i := range m.transcript.chat.Messages {
		known[m.transcript.chat.Messages[i].Message.Name] = true
	}
	for i := range read {
		if name := read[i].Name; !known[name] {
			older = append(older, openMessage{name, cmp.Or(read[i].Spec.Content, name)})
			awaited = append(awaited, await(m.ctx, m.actions, name, ""))
		}
	}
	m.turn.open = append(older, m.turn.open...)
	return tea.Batch(awaited...)
}
