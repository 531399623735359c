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

func TestAdviceIsSummedApart(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "hello"), chattest.Calls("call_1"))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Results("call_1"), func(m *v1beta1.ChatMessage) {
		g := m.Spec.Generation
		g.AdvisorUsage = &v1beta1.TokenUsage{InputTokens: 500, OutputTokens: 20, TotalTokens: 520}
		g.AdvisorModel = &v1beta1.ModelIdentity{Config: "strong", Provider: "anthropic", Name: "strong"}
		g.Cost = &v1beta1.Cost{Currency: "EUR", MicroUnits: 2000}
	})
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	st := chatIn(t, ns, "c").Status
	if st.Usage.TotalTokens != 30 ||
		st.AdvisorUsage != (v1beta1.TokenUsage{InputTokens: 500, OutputTokens: 20, TotalTokens: 520}) {
		t.Errorf("the usage is %+v, the advisor's %+v", st.Usage, st.AdvisorUsage)
	}
	if len(st.Cost) != 1 || st.Cost[0] != (v1beta1.Cost{Currency: "EUR", MicroUnits: 2000}) {
		t.Errorf("the cost is %+v", st.Cost)
	}
}

func TestMissingAdvisorShowsUntilItExists(t *testing.T) {
	ns := parallel(t)
	chat := newChat(ns, "c", "hello")
	chat.Spec.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true),
		ModelConfigRef: &v1beta1.ModelConfigReference{Name: "strong"}}
	create(t, chat)
	unavailable := func(st *v1beta1.ChatStatus) *metav1.Condition {
		return meta.FindStatusCondition(st.Conditions, v1beta1.ConditionAdvisorUnavailable)
	}
	first := assigned(t, ns, "c", 1, 1)
	want := "ChatModelConfig strong, which spec.advisor.modelConfigRef names, does not exist. " +
		"Create it, or change the reference"
	if c := unavailable(&first.Status); c == nil || c.Reason != "ModelConfigNotFound" || c.Message != want {
		t.Fatalf("the chat says %+v", c)
	}
	answers(t, first, chattest.Says("Fine."))
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	if unavailable(&chatIn(t, ns, "c").Status) == nil {
		t.Error("after the turn the chat does not say it any more")
	}

	create(t, modelConfig(ns, "strong"))
	eventually(t, "the chat at rest sees the ChatModelConfig",
		func() bool { return unavailable(&chatIn(t, ns, "c").Status) == nil })
	check.OK(t, cluster.Client.Delete(t.Context(), configIn(t, ns, "strong")))
	eventually(t, "the chat at rest sees that the ChatModelConfig is gone",
		func() bool { return unavailable(&chatIn(t, ns, "c").Status) != nil })
	patch(t, chatIn(t, ns, "c"), `{"spec":{"advisor":{"enabled":false}}}`)
	eventually(t, "the chat has no advisor", func() bool { return unavailable(&chatIn(t, ns, "c").Status) == nil })
}

func TestIdleChatPicksUpAdvisorChangeOfClass(t *testing.T) {
	ns := parallel(t)
	class := chattest.In(ns, chattest.Class("coder", func(s *v1beta1.ChatClassSpec) { s.Default = true }))
	create(t, class)
	chat := newChat(ns, "c", "hello")
	chat.Spec.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true)}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered) // An open one would wake the chat.
	patchSettings(t, class, `{"spec":{"defaults":{"advisor":{"modelConfigRef":{"name":"gone"}}}}}`)
	eventually(t, "the chat at rest says that the advisor is missing", func() bool {
		c := meta.FindStatusCondition(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionAdvisorUnavailable)
		return c != nil && c.Reason == string(v1beta1.ErrorModelConfigNotFound)
	})
}
