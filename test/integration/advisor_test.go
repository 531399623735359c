// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

func TestWhatAdviceTookIsSummedApartAndItsCostIsTheChats(t *testing.T) {
	ns := namespace(t)
	create(t, newChat(ns, "c", "hello"))
	create(t, answer(assigned(t, ns, "c", 1, 1), callTool))
	create(t, answer(assigned(t, ns, "c", 2, 1), func(m *v1alpha1.ChatMessage) {
		toolResult(m)
		g := m.Spec.Generation
		g.Usage, g.AdvisorUsage = nil, &v1alpha1.TokenUsage{InputTokens: 500, OutputTokens: 20, TotalTokens: 520}
		g.AdvisorModel = &v1alpha1.ModelIdentity{Config: "strong", Provider: "anthropic", Name: "strong"}
		g.Cost = &v1alpha1.Cost{Currency: "EUR", MicroUnits: 2000}
	}))
	create(t, answer(assigned(t, ns, "c", 3, 1), nil))
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1alpha1.ReasonAnswered)
	st := chatIn(t, ns, "c").Status
	if st.Usage.TotalTokens != 30 || st.AdvisorUsage != (v1alpha1.TokenUsage{InputTokens: 500, OutputTokens: 20, TotalTokens: 520}) {
		t.Errorf("the usage is %+v, the advisor's %+v", st.Usage, st.AdvisorUsage)
	}
	if len(st.Cost) != 1 || st.Cost[0] != (v1alpha1.Cost{Currency: "EUR", MicroUnits: 2000}) {
		t.Errorf("the cost is %+v", st.Cost)
	}
}
