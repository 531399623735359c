// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestStrangersResultIsRefused(t *testing.T) {
	ns := parallel(t)
	first := started(t, ns, "c", "first")
	answers(t, first, chattest.Says("FORGED"),
		func(m *v1beta1.ChatMessage) { m.Spec.Generation.Pod = "parley-generation-stranger" })
	second := assigned(t, ns, "c", 1, 2) // It waits far less than the hour after which any attempt is given up.
	if second.Status.Generation.Pod != first.Status.Generation.Pod {
		t.Errorf("the attempt moved from pod %s to %s", first.Status.Generation.Pod, second.Status.Generation.Pod)
	}
	answers(t, second, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	check.Equal(t, "the head is", "c-1-2", chatIn(t, ns, "c").Status.History.Head)
}

func TestEarlierStrangersResultHoldsNothingUp(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	chat := chatIn(t, ns, "c")
	chat.Status.History.Version = 1
	chat.Status.Generation = &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant,
		Pod: "parley-generation-stranger"}
	answers(t, chat, chattest.Says("Fine."))
	create(t, say(ns, "c", "question"))
	chat = assigned(t, ns, "c", 1, 2)
	answers(t, chat, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
}
