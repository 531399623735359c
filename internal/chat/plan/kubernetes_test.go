// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

func TestUnavailableKubernetesAccessSetsConditionUntilNextReply(t *testing.T) {
	without := func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.KubernetesUnavailable = &v1beta1.KubernetesUnavailable{
			Reason: v1beta1.KubernetesTokenForbidden, Message: "create a Role"}
	}
	w := newWorld(t).say("a").answer(chattest.Says("I may not look."), without)
	said := meta.FindStatusCondition(w.chat.Status.Conditions, "KubernetesUnavailable")
	if ready := readyOf(w); said == nil || said.Reason != "TokenForbidden" ||
		!strings.HasSuffix(said.Message, "create a Role") || ready.Reason != string(v1beta1.ReasonAnswered) {
		t.Errorf("it says %+v", w.chat.Status.Conditions)
	}
	w.say("b").answer(chattest.Says("I have looked."))
	if meta.FindStatusCondition(w.chat.Status.Conditions, "KubernetesUnavailable") != nil {
		t.Errorf("a reply of one that could leaves %+v", w.chat.Status.Conditions)
	}
}
