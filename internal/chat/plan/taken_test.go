// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// strangers are messages under the name of a result that are none.
var strangers = map[string]func(*v1beta1.ChatMessage){
	"another pod":   func(m *v1beta1.ChatMessage) { m.Spec.Generation.Pod = "other" },
	"not generated": func(m *v1beta1.ChatMessage) { m.Spec.Generation = nil },
}

func TestResultOfDeletedChatIsIgnored(t *testing.T) {
	w := newWorld(t).say("a").
		answer(chattest.Says("hi"), func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = "v" })
	w.want("Running v1 a/1 1:GenerateAssistant []").answer(chattest.Says("hi")).want("Waiting v2 c-1-1/2 - []")
}

func TestAllResultNamesTakenFailsTheTurn(t *testing.T) {
	w := newWorld(t).say("a")
	for range v1beta1.DefaultMaxAttempts {
		w.answer(chattest.Says("hi"), strangers["not generated"]).later(time.Hour)
	}
	w.want("Error v1 a/1 - []")
	if e := w.chat.Status.LastError; e.Reason != v1beta1.ErrorResultNameConflict || e.Retryable || e.Advice == "" {
		t.Errorf("the error is %+v", e)
	}
}

func TestInterruptingEndsAtATakenResultName(t *testing.T) {
	w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt).want("Interrupting v1 a/1 1:GenerateAssistant []")
	w.answer(chattest.Says("hi"), strangers["another pod"]).want("Waiting v2 a/1 - []")
}

func TestTheRetryAfterATakenNameSaysSo(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"), strangers["another pod"])
	if g := w.chat.Status.Generation; g == nil || g.Attempt != 2 {
		t.Fatalf("the attempt under way is %+v", g)
	}
	w.answer(chattest.Says("hi"), strangers["another pod"]) // The second in a row waits.
	if r := w.chat.Status.Retry; r == nil || r.Reason != v1beta1.ErrorResultNameConflict {
		t.Errorf("the retry is %+v", r)
	}
}
