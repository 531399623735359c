// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/tools"
)

// reviewing is a tool that asks people itself; it notes whether it was told that it may have run.
type reviewingTool struct {
	*counting
	told *bool
}

func reviewing(name string, told *bool) reviewingTool {
	return reviewingTool{&counting{name: name, Traits: tools.Traits{Repeatable: true, OwnsApproval: true}}, told}
}

func (p reviewingTool) Run(_ context.Context, call tools.Call) (string, error) {
	*p.told = call.Again
	return "ran " + call.ID, nil
}

func TestACallThatAsksPeopleItselfWaitsForNobodyBefore(t *testing.T) {
	p := performer(reviewing("k8s_apply", new(bool)), again("execute"))
	p.chat.Spec.Tools = &v1alpha1.ChatTools{ToolPolicy: v1alpha1.ToolPolicy{Approval: []v1alpha1.ToolPattern{"*"}}}
	s := p.tools.withRequired(collect.Step{Parts: replied("k8s_apply", "execute")[0].Spec.Parts})
	if own, other := s.Parts[0].ToolCall, s.Parts[1].ToolCall; own.RequiresAction != "" ||
		other.RequiresAction != v1alpha1.RequiresApproval || s.CallsRequiringAction != 1 {
		t.Errorf("the calls are %+v and %+v", own, other)
	}
}

func TestACallIsToldThatItMayHaveRun(t *testing.T) {
	for name, c := range map[string]struct {
		attempt int32
		resumed bool
		want    bool
	}{
		"in a first attempt":              {attempt: 1},
		"in a second attempt":             {attempt: 2, want: true},
		"in another life of the same pod": {attempt: 1, resumed: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			told := !c.want
			p := performer(reviewing("k8s_delete", &told), again("other"))
			p.task.Fence.Attempt = c.attempt
			if c.resumed {
				p.Resume(t.Context(), replied("k8s_delete", "other"), ended("2"))
			} else {
				p.executeTools(t.Context(), replied("k8s_delete", "other"), nobody{})
			}
			if told != c.want {
				t.Errorf("it was told %t", told)
			}
		})
	}
}
