// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// queueOf names the messages that wait, in their order.
func queueOf(t *testing.T, ns, chat string) (names []string) {
	t.Helper()
	for _, queued := range chatIn(t, ns, chat).Status.Queue {
		names = append(names, queued.Name)
	}
	return names
}

// burst creates messages within a second, whose names are in no order, and returns the names in the order of creation.
func burst(t *testing.T, ns, chat string, n int) (names []string) {
	t.Helper()
	for i := range n {
		m := say(ns, chat, fmt.Sprintf("q%d", 9-i))
		if i%2 == 1 {
			m.Name, m.GenerateName = "", "q-"
		}
		create(t, m)
		names = append(names, m.Name)
	}
	return names
}

func TestMessagesOfOneSecondKeepTheirOrder(t *testing.T) {
	const n = 8
	for name, first := range map[string]func(t *testing.T, ns string) (created []string){
		"while the chat is busy": func(t *testing.T, ns string) []string {
			started(t, ns, "c", "first")
			return burst(t, ns, "c", n)
		},
		"while no manager runs": func(t *testing.T, ns string) []string {
			started(t, ns, "c", "first")
			restart := stopManager(t)
			defer restart()
			return burst(t, ns, "c", n)
		},
		"before there is a model": func(t *testing.T, ns string) []string {
			config := modelConfig(ns, "default", func(s *v1beta1.ChatModelConfigSpec) { s.Default = true })
			remove(t, config)
			create(t, newChat(ns, "c", ""))
			created := burst(t, ns, "c", n+1)
			for _, m := range created { // Each has a status that was written in any order.
				waitForMessage(t, ns, m, metav1.ConditionUnknown, v1beta1.ReasonWaitingForChat)
			}
			create(t, config)
			return created[1:] // The first begins.
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns := namespace(t)
			want := first(t, ns)
			eventually(t, "all wait", func() bool { return len(queueOf(t, ns, "c")) == n })
			check.Equal(t, "the queue", want, queueOf(t, ns, "c"))
		})
	}
}

func TestMessagesThatCutInKeepTheirOrder(t *testing.T) {
	ns := parallel(t)
	chat := newChat(ns, "c", "first")
	chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
	create(t, chat)
	assigned(t, ns, "c", 1, 1)
	queued(t, ns, "c", "waits")
	for _, name := range []string{"zuerst", "dann", "am-ende"} {
		create(t, cutIn(ns, "c", name))
		waitForMessage(t, ns, name, metav1.ConditionUnknown, v1beta1.ReasonQueued)
	}
	check.Equal(t, "the queue is", []string{"zuerst", "dann", "am-ende", "waits"}, queueOf(t, ns, "c"))
	create(t, say(ns, "c", "refused"))
	waitForMessage(t, ns, "refused", metav1.ConditionFalse, v1beta1.ReasonQueueFull)
	answers(t, chatIn(t, ns, "c"), chattest.Interrupted())
	check.Equal(t, "message is answered first", "zuerst", assigned(t, ns, "c", 2, 1).Status.Turn.Message)
}

func TestNextStepKeepsReasonOfAbandonedCalls(t *testing.T) {
	ns := parallel(t)
	chat := ticketChat(ns)
	chat.Spec.Limits = &v1beta1.ChatLimits{ActionDeadlineSeconds: new(int32(1))}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1")))
	late := assigned(t, ns, "c", 3, 1)
	if got := late.Status.Turn.CallsCanceledReason; got != v1beta1.CallsTimedOut {
		t.Fatalf("the calls were given up because of %q", got)
	}
	answers(t, late, chattest.CallsOf(ticket("call_2")))
	stopped := assigned(t, ns, "c", 5, 1)
	check.Equal(t, "the next step says", v1beta1.CallsTimedOut,
		messageIn(t, ns, "c-3-1").Spec.Generation.CallsCanceledReasonBefore)
	answers(t, stopped, chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	waitForPhase(t, ns, "c", v1beta1.ChatError)
	create(t, say(ns, "c", "next"))
	check.Equal(t, "the next turn says", stopped.Status.Turn.CallsCanceledReason,
		assigned(t, ns, "c", 6, 1).Status.Internal.Turn.CallsCanceledReasonBefore)
	answers(t, chatIn(t, ns, "c"), chattest.Says("Fine."))
	waitForMessage(t, ns, "next", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	edit(t, ns, "next", "Something else.")
	check.Equal(t, "the edited turn says", stopped.Status.Turn.CallsCanceledReason,
		assigned(t, ns, "c", 8, 1).Status.Internal.Turn.CallsCanceledReasonBefore)
	check.Equal(t, "the message says", stopped.Status.Turn.CallsCanceledReason,
		messageIn(t, ns, "next").Status.CallsCanceledReasonBefore)
}

func TestVersionsGrowAlongAResumedHistory(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	create(t, resultsOf(ns, "results", "call_1", `"T-1"`))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	create(t, say(ns, "c", "second"))
	answers(t, assigned(t, ns, "c", 5, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "second", metav1.ConditionTrue, v1beta1.ReasonAnswered)

	remove(t, messageIn(t, ns, "results"))
	waitForHistory(t, ns, "c", v1beta1.ChatRequiresAction, "c-1-1", 2)
	waitForMessage(t, ns, "c-prompt", metav1.ConditionUnknown, v1beta1.ReasonAnswering)
	if got := messageIn(t, ns, "c-prompt").Status; got.HistoryVersion != 1 || got.ResumedVersion <= 6 {
		t.Errorf("the message says version %d, resumed with %d", got.HistoryVersion, got.ResumedVersion)
	}
	create(t, resultsOf(ns, "again", "call_1", `"T-2"`))
	eventually(t, "the results are taken", func() bool { return chatIn(t, ns, "c").Status.Generation != nil })
	answers(t, chatIn(t, ns, "c"), chattest.Says("Fine."))
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
}
