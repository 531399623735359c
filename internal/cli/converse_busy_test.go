// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
)

// heeds lets the conversation heed an event of that data.
func (c *conversation) heeds(t *testing.T, name string, data any) {
	t.Helper()
	raw, err := json.Marshal(data)
	if err == nil {
		_, err = c.heed(stream.Event{Name: name, Data: raw})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestATextThatIsOnItsWayCanBeInterrupted has the chat say how it stood before the text that has just been sent.
func TestATextThatIsOnItsWayCanBeInterrupted(t *testing.T) {
	rests, works := stream.Status{Ready: metav1.ConditionTrue}, stream.Status{Ready: metav1.ConditionUnknown}
	taken := stream.MessageCommitted{Message: stream.Message{Name: "m"}}
	c := &conversation{mine: map[string]bool{"m": true}}
	for _, step := range []struct {
		what  string
		sent  string
		event string
		data  any
		busy  bool
	}{
		{"it rests", "", stream.EventStatus, rests, false},
		{"a text is sent, and it is told late that the chat rested", "m", stream.EventStatus, rests, true},
		{"the chat has taken it up", "m", stream.EventMessage, taken, true},
		{"it is answered", "", stream.EventStatus, works, true},
		{"it is told again", "", stream.EventMessage, taken, true},
		{"the turn is over", "", stream.EventStatus, rests, false},
	} {
		c.sent = step.sent
		if c.heeds(t, step.event, step.data); c.busy() != step.busy {
			t.Errorf("%s: busy is %v", step.what, c.busy())
		}
	}
}

func TestATextThatWaitsInTheQueueLeavesItToTheChatWhetherThereIsSomethingToInterrupt(t *testing.T) {
	c := &conversation{sent: "m"}
	c.heeds(t, stream.EventQueueUpdate, stream.QueueUpdate{Queue: []stream.QueuedMessage{{Name: "m"}}})
	if c.busy() {
		t.Error("it does not")
	}
}
