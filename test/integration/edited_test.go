// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realpod"
	"parley.dev/parley/test/modelserver"
)

// servedNamespace is one whose chats ask a model that says "Fine."; it keeps what it was asked.
func servedNamespace(t *testing.T) (ns string, models *modelserver.Server, config *v1beta1.ChatModelConfig) {
	t.Helper()
	models, err := modelserver.New(
		modelserver.Script{
			Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}}}})
	check.OK(t, err)
	server := httptest.NewServer(models)
	t.Cleanup(server.Close)
	ns = bareNamespace(t)
	config = modelConfig(ns, "default", func(s *v1beta1.ChatModelConfigSpec) {
		s.Default, s.BaseURL = true, server.URL+"/v1"
		dollars(s)
	})
	create(t, config.DeepCopy())
	return ns, models, config
}

// An edit cuts the history, but its turn can end before any pod has seen it.
// Whatever ends it, the next turn builds on the new text.
func TestEditBetweenPodsReachesTheModel(t *testing.T) {
	t.Parallel()
	endHeldTurn := func(t *testing.T, ns string, why v1beta1.ConditionReason) {
		t.Helper()
		waitForReady(t, ns, "c", metav1.ConditionUnknown, why)
		annotate(t, ns, "c", v1beta1.AnnotationInterrupt, "now")
		waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	}
	for name, editUnseen := range map[string]func(t *testing.T, ns string, config *v1beta1.ChatModelConfig){
		"while the chat is suspended": func(t *testing.T, ns string, _ *v1beta1.ChatModelConfig) {
			patch(t, newChat(ns, "c", ""), `{"spec":{"suspend":true}}`)
			edit(t, ns, "c-prompt", "NEW-TEXT")
			endHeldTurn(t, ns, v1beta1.ReasonSuspended)
			patch(t, newChat(ns, "c", ""), `{"spec":{"suspend":false}}`)
		},
		"while there is no capacity": func(t *testing.T, ns string, _ *v1beta1.ChatModelConfig) {
			allow(t, ns, "none", 0)
			edit(t, ns, "c-prompt", "NEW-TEXT")
			endHeldTurn(t, ns, v1beta1.ReasonWaitingForCapacity)
			remove(t, chatQuota(ns, "none", nil, nil))
		},
		"while the budget is used up": func(t *testing.T, ns string, _ *v1beta1.ChatModelConfig) {
			patch(t, newChat(ns, "c", ""), `{"spec":{"limits":{"budget":{"currency":"USD","amount":"0.000001"}}}}`)
			edit(t, ns, "c-prompt", "NEW-TEXT")
			waitForReady(t, ns, "c", metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorBudgetReached))
			patch(t, newChat(ns, "c", ""), `{"spec":{"limits":{"budget":{"amount":"5"}}}}`)
		},
		"while there is no model": func(t *testing.T, ns string, config *v1beta1.ChatModelConfig) {
			remove(t, config.DeepCopy())
			edit(t, ns, "c-prompt", "NEW-TEXT")
			waitForReady(t, ns, "c", metav1.ConditionUnknown, v1beta1.ConditionReason(v1beta1.ErrorModelConfigNotFound))
			create(t, config.DeepCopy())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns, models, config := servedNamespace(t)
			create(t, newChat(ns, "c", "OLD-SECRET"))
			realpod.Run(t, cluster.Config, ns, assigned(t, ns, "c", 1, 1).Status.Generation.Pod)
			waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
			editUnseen(t, ns, config)
			for _, next := range []string{"second", "third"} {
				create(t, say(ns, "c", next))
				waitForMessage(t, ns, next, metav1.ConditionTrue, v1beta1.ReasonAnswered)
				requests := models.Requests()
				if asked := string(requests[len(requests)-1].Body); !strings.Contains(asked, "NEW-TEXT") ||
					strings.Contains(asked, "OLD-SECRET") {
					t.Errorf("for message %s the model was told %s", next, asked)
				}
			}
		})
	}
}
