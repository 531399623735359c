// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestChatReportsMissingSkillAndResumesOnceCreated(t *testing.T) {
	ns := parallel(t)
	chat := newChat(ns, "c", "first")
	chat.Spec.SkillsFrom = []v1beta1.SkillSource{{ConfigMapRef: v1beta1.ConfigMapReference{Name: "pdf"}}}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Fails(v1beta1.ErrorConfigMapNotFound))
	waitForPhase(t, ns, "c", v1beta1.ChatError)
	ready := meta.FindStatusCondition(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionReady)
	check.Equal(t, "Ready is", []any{metav1.ConditionFalse, string(v1beta1.ErrorConfigMapNotFound)},
		[]any{ready.Status, ready.Reason})
	create(t, say(ns, "c", "again"))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "again", metav1.ConditionTrue, v1beta1.ReasonAnswered)
}

// handled waits until the chat has handled the newest request of the kind, and returns what became of it.
func handled(t *testing.T, ns, chat string, kind v1beta1.RequestKind, token string) (r v1beta1.HandledRequest) {
	t.Helper()
	eventually(t, fmt.Sprintf("chat %s has handled %s %s", chat, kind, token), func() bool {
		for _, r = range chatIn(t, ns, chat).Status.Requests {
			if r.Kind == kind && r.Token == token {
				return true
			}
		}
		return false
	})
	return r
}

func TestWorkspaceContextIsRefreshedOnRequest(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	create(t, working(ns, "root"))
	begun := assigned(t, ns, "root", 1, 1)
	create(t, subChat(ns, "sub", "root"))
	annotate(t, ns, "root", v1beta1.AnnotationRefreshContext, "now")
	check.Equal(t, "in a turn", v1beta1.RequestDone,
		handled(t, ns, "root", v1beta1.RequestRefreshContext, "now").Outcome)
	answers(t, begun, chattest.Says("Fine."))
	waitForPhase(t, ns, "root", v1beta1.ChatWaiting)
	annotate(t, ns, "root", v1beta1.AnnotationRefreshContext, "again")
	check.Equal(t, "at rest", v1beta1.RequestDone,
		handled(t, ns, "root", v1beta1.RequestRefreshContext, "again").Outcome)
	chat := chatIn(t, ns, "root")
	if st := chat.Status; st.Internal.ContextRefreshedVersion != st.History.Version || st.Phase != v1beta1.ChatWaiting {
		t.Errorf("the status is %+v", st)
	}
	// A sub-chat has a conversation of its own, and asks for itself.
	check.Equal(t, "the sub-chat was asked at version", 0,
		chatIn(t, ns, "sub").Status.Internal.ContextRefreshedVersion)
	assigned(t, ns, "sub", 1, 1)
	annotate(t, ns, "sub", v1beta1.AnnotationRefreshContext, "now")
	check.Equal(t, "in a sub-chat", v1beta1.RequestDone,
		handled(t, ns, "sub", v1beta1.RequestRefreshContext, "now").Outcome)
}

func TestEachKindOfRequestHasItsRecord(t *testing.T) {
	ns := parallel(t)
	answered(t, ns)
	for _, kind := range v1beta1.RequestKinds() {
		annotate(t, ns, "c", kind.Annotation(), "u")
		handled(t, ns, "c", kind, "u")
	}
	if got := chatIn(t, ns, "c").Status.Requests; len(got) != len(v1beta1.RequestKinds()) {
		t.Errorf("the status has %+v", got)
	}
	check.Equal(t, "without a workspace", v1beta1.RequestRefused,
		handled(t, ns, "c", v1beta1.RequestRefreshContext, "u").Outcome)
}
