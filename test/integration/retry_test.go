// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestFailedAttemptIsRetriedWhenDue(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "hello"), chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
	eventually(t, "the retry is announced", func() bool {
		st := chatIn(t, ns, "c").Status
		return st.Retry != nil && st.Retry.Attempt == 1 && st.Generation == nil &&
			readyReason(st.Conditions) == v1beta1.ReasonRetrying
	})
	due := chatIn(t, ns, "c").Status.Retry
	chat := assigned(t, ns, "c", 1, 2)
	if due != nil && chat.Status.Generation.StartedAt.Before(&due.At) {
		t.Errorf("the second attempt began at %v, before %v", chat.Status.Generation.StartedAt, due.At)
	}
	waitGone(t, ns, "c-1-1") // The report has been acted on.
	answers(t, chat, chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-2", 2)
}

func TestRetryingChatIsInterrupted(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "hello"), chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow,
		func(e *v1beta1.GenerationError) { e.RetryAfterSeconds = new(int32(3600)) }))
	eventually(t, "the retry is announced", func() bool { return chatIn(t, ns, "c").Status.Retry != nil })
	annotate(t, ns, "c", v1beta1.AnnotationInterrupt, "1")
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-prompt", 1)
	if chatIn(t, ns, "c").Status.Retry != nil {
		t.Error("the retry outlives its turn")
	}
}

func TestAnotherModelIsAskedWhenOneCannotAnswer(t *testing.T) {
	ns := parallel(t)
	second := configIn(t, ns, "default").DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: "second"}
	second.Spec.Default, second.Spec.Model = false, "the-second"
	create(t, second)
	patchSettings(t, configIn(t, ns, "default"), `{"spec":{"fallbacks":[{"name":"second"},{"name":"gone"}]}}`)
	eventually(t, "the configuration says what is missing", func() bool {
		return meta.IsStatusConditionTrue(configIn(t, ns, "default").Status.Conditions,
			v1beta1.ConditionReferencesUnresolved)
	})
	check.Equal(t, "chats are answered without it, and Ready is", metav1.ConditionTrue,
		meta.FindStatusCondition(configIn(t, ns, "default").Status.Conditions, v1beta1.ConditionReady).Status)
	answers(t, started(t, ns, "c", "hello"), chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	chat := assigned(t, ns, "c", 1, 2)
	g := chat.Status.Generation
	check.Equal(t, "asked is", []any{"second", "the-second"}, []any{g.ModelConfig, chat.Status.Model})
	answers(t, chat, chattest.Fails(v1beta1.ErrorUsageLimitReached))
	eventually(t, "the turn has failed", func() bool {
		e := chatIn(t, ns, "c").Status.LastError
		return e != nil && e.Reason == v1beta1.ErrorUsageLimitReached
	})
}

func TestCompactionIsMadeOncePerToken(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", "hello"))
	annotate(t, ns, "c", v1beta1.AnnotationCompact, "early")
	eventually(t, "it is refused while the chat is busy",
		func() bool { return requested(t, ns, "c", "early") == v1beta1.RequestRefused })
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."), chattest.Fills(10, 1))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)

	annotate(t, ns, "c", v1beta1.AnnotationCompact, "now")
	chat := assigned(t, ns, "c", 3, 1)
	st := chat.Status
	check.Equal(t, "status is", []any{v1beta1.ActionCompact, v1beta1.CompactionManual, v1beta1.ReasonCompacting},
		[]any{st.Generation.Action, st.Internal.Compaction, readyReason(st.Conditions)})
	answers(t, chat, chattest.Compacts("They greeted.", chattest.From(2)))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-3-1", 3)
	st = chatIn(t, ns, "c").Status
	check.Equal(t, "status is", []any{2, true, "", v1beta1.TurnAnswered},
		[]any{st.History.ContextStart, st.Context.Compacted, st.Internal.Compaction, st.Turn.Result})
	annotate(t, ns, "c", v1beta1.AnnotationCompact, "again")
	eventually(t, "there is nothing more to compact",
		func() bool { return requested(t, ns, "c", "again") == v1beta1.RequestRefused })
}

func TestACompactionCanBeInterrupted(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "hello"), chattest.Says("Fine."), chattest.Fills(10, 1))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
	annotate(t, ns, "c", v1beta1.AnnotationCompact, "now")
	chat := assigned(t, ns, "c", 3, 1)
	annotate(t, ns, "c", v1beta1.AnnotationInterrupt, "stop")
	eventually(t, "the pod is told", func() bool { return chatIn(t, ns, "c").Status.Phase == v1beta1.ChatInterrupting })
	answers(t, chat, chattest.Interrupted())
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
	check.Equal(t, "the turn is said to be", v1beta1.TurnAnswered, chatIn(t, ns, "c").Status.Turn.Result)
}

func configIn(t *testing.T, ns, name string) *v1beta1.ChatModelConfig {
	t.Helper()
	return read[v1beta1.ChatModelConfig](t, ns, name)
}

func requested(t *testing.T, ns, chat, token string) v1beta1.RequestOutcome {
	t.Helper()
	for _, handled := range chatIn(t, ns, chat).Status.Requests {
		if handled.Token == token {
			return handled.Outcome
		}
	}
	return ""
}

func readyReason(conditions []metav1.Condition) v1beta1.ConditionReason {
	return v1beta1.ReasonOf(meta.FindStatusCondition(conditions, v1beta1.ConditionReady))
}
