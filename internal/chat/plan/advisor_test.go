// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

func TestMissingAdvisorSetsConditionWithoutBlockingChat(t *testing.T) {
	w := newWorld(t)
	says := func() bool {
		return meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionAdvisorUnavailable) != nil
	}
	missing := func(f *Facts) {
		f.NoAdvice = &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigNotFound, Message: "create it"}
	}
	for _, step := range []struct {
		what  string
		facts func(*Facts)
		does  func()
		want  string
		says  bool
	}{
		{"before anything is asked", missing, func() { w.pass(nil) }, "Waiting v0 /0 - []", true},
		{"a turn begins", missing, func() { w.say("a") }, "Running v1 a/1 1:GenerateAssistant []", true},
		{"the model is answered", missing, func() { w.answer(chattest.Calls("1")) }, "Running v2 c-1-1/2 1:ExecuteTools []",
			true},
		{"the ChatModelConfig was created", nil, func() { w.pass(nil) }, "Running v2 c-1-1/2 1:ExecuteTools []", false},
		{"the turn ends", missing, func() { w.answer(chattest.Results("1")).answer(chattest.Says("hi")) },
			"Waiting v4 c-3-1/4 - []", true},
		{"the chat is archived", missing, func() { w.pass(func(f *Facts) { f.Archive = true }) }, "Waiting v4 c-3-1/4 - []",
			false},
		{"it is taken back", missing, func() { w.pass(nil) }, "Waiting v4 c-3-1/4 - []", true},
	} {
		w.facts = step.facts
		step.does()
		w.want(step.want)
		if says() != step.says {
			t.Errorf("%s: the conditions are %+v", step.what, w.chat.Status.Conditions)
		}
		if meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionStalled) != nil || len(w.last.Notices) != 0 {
			t.Errorf("%s: the chat is stalled or makes an Event", step.what)
		}
	}
}
