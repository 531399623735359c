// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/modelserver"
	"parley.dev/parley/internal/tools"
)

func TestTheAdvisorIsOfferedWhereItIsAllowedAndCanBeAsked(t *testing.T) {
	policy := func(mode v1alpha1.AdvisorMode) func(*v1alpha1.ChatModelConfigSpec) {
		return func(s *v1alpha1.ChatModelConfigSpec) {
			s.Default, s.Advisor = true,
				&v1alpha1.AdvisorPolicy{Mode: mode, ModelConfigRef: &v1alpha1.ModelConfigReference{Name: "impatient"}}
		}
	}
	unavailable := func(s *v1alpha1.ChatStatus) {
		s.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionAdvisorUnavailable, Status: metav1.ConditionTrue, Reason: "ModelConfigNotFound",
			LastTransitionTime: metav1.Now(),
		}}
	}
	for name, c := range map[string]struct {
		config  func(*v1alpha1.ChatModelConfigSpec)
		chat    func(*v1alpha1.ChatSpec)
		status  func(*v1alpha1.ChatStatus)
		offered bool
	}{
		"a chat that asks for it":    {chat: withAdvisor, offered: true},
		"a chat that does not":       {},
		"one that has it by default": {config: policy(v1alpha1.AdvisorOptOut), offered: true},
		"one that turns it off": {config: policy(v1alpha1.AdvisorOptOut),
			chat: func(s *v1alpha1.ChatSpec) { s.Advisor = &v1alpha1.ChatAdvisor{} }},
		"one that may not":                    {config: policy(v1alpha1.AdvisorForbidden), chat: withAdvisor},
		"one whose advisor cannot be asked":   {chat: withAdvisor, status: unavailable},
		"one that has none that can be asked": {config: policy(v1alpha1.AdvisorOptOut), status: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, modelserver.Script{}, func(p *pod, o *runner.Options) {
				o.Tools = tools.NewRegistry(advisor.Tool{})
				if c.config != nil {
					governed := modelConfig(p.ns, "governed", p.url)
					c.config(&governed.Spec)
					create(t, governed)
				}
			})
			chat := p.newChat("offered", c.chat)
			if c.status != nil {
				chat.write(c.status)
			}
			if c.config != nil {
				chat.config = "governed"
			}
			chat.ask("offered-1", "Clean up the archive.")
			chat.result()
			body := string(p.models.Requests()[0].Body)
			tool, guidance := strings.Contains(body, `"name":"advisor"`),
				strings.Contains(body, "You can ask another model for advice")
			if tool != c.offered || guidance != c.offered {
				t.Errorf("the tool is offered: %v; the model is told of it: %v; wanted: %v", tool, guidance, c.offered)
			}
		})
	}
}
