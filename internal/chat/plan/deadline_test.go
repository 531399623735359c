// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// told is what people are told of the last pass.
func told(w *world) string {
	var all []string
	for _, n := range w.last.Notices {
		all = append(all, n.Note)
	}
	return strings.Join(all, "\n")
}

func TestAnAttemptHasTimeByItsAction(t *testing.T) {
	reply := func(t *testing.T) *world { t.Helper(); return newWorld(t).say("a") }
	calls := func(t *testing.T) *world {
		t.Helper()
		return reply(t).answer(chattest.Calls("1")).want("Running v2 c-1-1/2 1:ExecuteTools []")
	}
	for name, c := range map[string]struct {
		begin func(t *testing.T) *world
		time  time.Duration
	}{
		"a reply": {reply, 24 * time.Hour},
		// A call may wait for a command for four hours.
		"calls of tools": {calls, 5 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.begin(t)
			if in := Deadline(&w.chat.Status, w.now); in != c.time {
				t.Errorf("the chat is looked at again in %s", in)
			}
			w.later(c.time - time.Second)
			if g := w.chat.Status.Generation; g.Attempt != 1 {
				t.Errorf("before its time was over it was made again: %+v", g)
			}
			if in := Deadline(&w.chat.Status, w.now); in != time.Second {
				t.Errorf("the chat is looked at again in %s", in)
			}
			w.later(time.Second)
			if g := w.chat.Status.Generation; g == nil || g.Attempt != 2 || !strings.Contains(told(w),
				"Attempt 1 timed out after "+c.time.String()) {
				t.Errorf("then it is %+v, and people are told %s", g, told(w))
			}
			w.later(c.time)
			if r := w.chat.Status.Retry; r == nil || r.Reason != v1beta1.ErrorGenerationPodLost ||
				!r.At.Equal(w.at(time.Second)) {
				t.Errorf("the next one does not wait: %+v", r)
			}
		})
	}
}

func TestPodLossIsReportedAtAttemptDeadline(t *testing.T) {
	w := newWorld(t).say("a")
	w.now = w.now.Add(25 * time.Hour)
	w.pass(lost("its node is gone"))
	if said := told(w); !strings.Contains(said, "was lost during attempt 1: its node is gone") {
		t.Errorf("people are told %s", said)
	}
}

func TestPendingCallsWakeTheChatAtTheirDeadline(t *testing.T) {
	w := waits(t, pending(v1beta1.RequiresClient, "1")...)
	w.now = w.now.Add(time.Minute)
	if in := Deadline(&w.chat.Status, w.now); in != v1beta1.DefaultActionDeadline-time.Minute {
		t.Errorf("the chat is looked at again in %s", in)
	}
}
