// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/client"
)

// TestSentTextCanBeInterruptedBeforeItsTurn has the chat say how it stood before the text that has just been sent.
func TestSentTextCanBeInterruptedBeforeItsTurn(t *testing.T) {
	rests, works := stream.Status{Ready: metav1.ConditionTrue}, stream.Status{Ready: metav1.ConditionUnknown}
	taken := stream.MessageCommitted{Message: stream.Message{Name: "m"}}
	c := &conversation{mine: map[string]bool{"m": true}}
	for _, step := range []struct {
		what   string
		sent   string
		update client.Update
		busy   bool
	}{
		{"it rests", "", &rests, false},
		{"a text is sent, and it is told late that the chat rested", "m", &rests, true},
		{"the chat has taken it up", "m", &taken, true},
		{"it is answered", "", &works, true},
		{"it is told again", "", &taken, true},
		{"the turn is over", "", &rests, false},
	} {
		c.sent = step.sent
		if c.observe(step.update); c.busy() != step.busy {
			t.Errorf("%s: busy is %v", step.what, c.busy())
		}
	}
}

func TestQueuedTextIsNotInterruptible(t *testing.T) {
	c := &conversation{sent: "m"}
	c.observe(&stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "m"}}})
	if c.busy() {
		t.Error("it does not")
	}
}
