// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelserver"
)

func TestAModelIsAskedWithWhatTheClassOfTheChatSays(t *testing.T) {
	p := startPod(t, usesTool, nil)
	chat := p.newChat("classed", func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be brief." })
	chat.has("coder", func(s *v1alpha1.ChatClassSpec) {
		s.Preamble = "Be safe."
		s.Restrictions = &v1alpha1.ChatRestrictions{Tools: &v1alpha1.ToolPolicy{
			Allow: []v1alpha1.ToolPattern{"current_*"}, Approval: []v1alpha1.ToolPattern{"current_time"},
		}}
	})
	chat.ask("classed-1", "What time is it?")
	reply := chat.result()
	if got := reply.Spec.Parts[0].ToolCall; got == nil || got.RequiresAction != v1alpha1.RequiresApproval ||
		reply.Spec.Generation.CallsRequiringAction != 1 {
		t.Errorf("the call is %+v", got)
	}
	body := string(p.models.Requests()[0].Body)
	if !strings.Contains(body, `Be safe.\n\nBe brief.`) || !strings.Contains(body, `"name":"current_time"`) ||
		strings.Contains(body, `"name":"wait_agent"`) {
		t.Errorf("the model was asked %.600s", body)
	}
}

func TestNothingIsDoneForAChatWhoseClassIsGone(t *testing.T) {
	p := startPod(t, modelserver.Script{}, nil)
	chat := p.newChat("orphaned", nil)
	class := chat.has("gone", func(*v1alpha1.ChatClassSpec) {})
	if err := cluster.Client.Delete(t.Context(), class, client.Preconditions{UID: &class.UID}); err != nil {
		t.Fatal(err)
	}
	chat.write(func(s *v1alpha1.ChatStatus) { s.ChatClass.Generation++ }) // Also where the watch has not told yet.
	chat.ask("orphaned-1", "hello")
	e := chat.result().Spec.Generation.Error
	if e == nil || e.Reason != v1alpha1.ErrorChatClassNotFound || !e.Retryable ||
		e.Message != "ChatClass gone does not exist any more" {
		t.Errorf("the error is %+v", e)
	}
	if n := len(p.models.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}
