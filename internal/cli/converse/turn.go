// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// turn is what a person could interrupt.
type turn struct {
	// sent is the last message until the chat has committed or queued it: statuses before that are of the time before.
	sent, text string
	// working is true while the status has a turn under way.
	working bool
}

// busy reports whether there is something to interrupt.
func (t *turn) busy() bool { return t.working || t.sent != "" }

// forget notes that the chat has the message, or refuses it.
func (t *turn) forget(message string) {
	if t.sent == message {
		t.sent = ""
	}
}

func (t *turn) observe(u client.Update) {
	switch u := u.(type) {
	case *stream.MessageCommitted:
		if t.sent == u.Message.Name { // The status follows.
			t.sent, t.working = "", true
		}
	case *stream.QueueUpdate:
		for _, waits := range u.Queue {
			t.forget(waits.Name)
		}
	case *stream.Status:
		t.working = u.Ready == metav1.ConditionUnknown
	}
}

// echo returns the item of the message that the chat does not have yet.
func (t *turn) echo() []*item {
	if t.sent == "" {
		return nil
	}
	lines := []string{""}
	for line := range strings.SplitSeq(terminal.Unmarked(printable.Escape(t.text)), "\n") {
		lines = append(lines, terminal.Mark+"> "+line)
	}
	return []*item{{own: lines}}
}
