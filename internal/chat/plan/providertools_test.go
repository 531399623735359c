// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

func TestUnavailableProviderToolsSetConditionUntilNextReply(t *testing.T) {
	without := func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.ProviderToolsUnavailable = []v1beta1.ProviderToolUnavailable{
			{Tool: v1beta1.ProviderWebSearch, Reason: v1beta1.ProviderToolNotSupported}}
	}
	says := func(w *world) bool {
		return meta.IsStatusConditionTrue(w.chat.Status.Conditions, v1beta1.ConditionProviderToolsUnavailable)
	}
	w := newWorld(t).say("a").answer(chattest.Says("I cannot search."), without)
	if ready := readyOf(w); !says(w) || ready.Reason != string(v1beta1.ReasonAnswered) {
		t.Errorf("it says %+v", w.chat.Status.Conditions)
	}
	if w.say("b").answer(chattest.Says("I have searched.")); says(w) {
		t.Errorf("a reply with all tools leaves %+v", w.chat.Status.Conditions)
	}
}
