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
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/modelserver"
)

func TestTheAdvisorIsOfferedWhereItIsAllowedAndCanBeAsked(t *testing.T) {
	t.Parallel()
	coder := func(s *v1alpha1.ChatClassSpec) {
		s.Defaults.Advisor = &v1alpha1.ChatAdvisor{
			Enabled: new(true), ModelConfigRef: &v1alpha1.ModelConfigReference{Name: "impatient"}}
	}
	forbids := func(s *v1alpha1.ChatClassSpec) {
		s.Restrictions = &v1alpha1.ChatRestrictions{Tools: &v1alpha1.ToolPolicy{Deny: []v1alpha1.ToolPattern{"advisor"}}}
	}
	unavailable := func(s *v1alpha1.ChatStatus) {
		s.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionAdvisorUnavailable, Status: metav1.ConditionTrue, Reason: "ModelConfigNotFound",
			LastTransitionTime: metav1.Now(),
		}}
	}
	for name, c := range map[string]struct {
		class   func(*v1alpha1.ChatClassSpec)
		chat    func(*v1alpha1.ChatSpec)
		status  func(*v1alpha1.ChatStatus)
		offered bool
	}{
		"a chat that asks for it":      {chat: withAdvisor, offered: true},
		"a chat that does not":         {},
		"one that has it of its class": {class: coder, offered: true},
		"one that turns it off": {class: coder,
			chat: func(s *v1alpha1.ChatSpec) { s.Advisor = &v1alpha1.ChatAdvisor{Enabled: new(false)} }},
		"one whose class forbids it":          {class: forbids, chat: withAdvisor},
		"one whose advisor cannot be asked":   {chat: withAdvisor, status: unavailable},
		"one that has none that can be asked": {class: coder, status: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, modelserver.Script{}, func(_ *pod, o *runner.Options) {
				o.Tools = tools.NewRegistry(advisor.Tool{})
			})
			chat := p.newChat("offered", c.chat)
			if c.status != nil {
				chat.write(c.status)
			}
			if c.class != nil {
				chat.has("coder", c.class)
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
