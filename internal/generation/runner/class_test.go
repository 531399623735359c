// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/modelserver"
)

func TestAModelIsAskedWithWhatTheClassOfTheChatSays(t *testing.T) {
	t.Parallel()
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

// speaks makes the namespace say something to all its chats.
func (c *conversation) speaks(preamble string) {
	c.t.Helper()
	class := chattest.In(c.ns, chattest.Class("everybody", func(s *v1alpha1.ChatClassSpec) {
		s.Default, s.NamespacePreamble, s.Preamble = true, preamble, "Of another class."
	}))
	create(c.t, class)
	c.write(func(s *v1alpha1.ChatStatus) {
		s.NamespaceClass = &v1alpha1.ChatClassInForce{Name: class.Name, UID: string(class.UID), Generation: class.Generation}
	})
}

func TestEveryCallOfEveryChatBeginsWithThePreambleOfTheNamespace(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(titleOfPods), &order{titleFirst: true})
	c := p.newTitledChat("c", func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be brief." })
	c.has("coder", func(s *v1alpha1.ChatClassSpec) { s.Preamble = "Be safe." })
	c.speaks("Be lawful.")
	c.ask("c-1", longQuestion)
	c.result()
	begins := map[string]int{}
	for _, r := range p.models.Requests() {
		body := string(r.Body)
		for _, system := range []string{`Be lawful.\n\nBe safe.\n\nBe brief.`, `Be lawful.\n\nWrite the title`} {
			if strings.Contains(body, `"`+system) {
				begins[system]++
			}
		}
		if strings.Contains(body, "Of another class") {
			t.Errorf("the model was told the preamble of a class that is not the chat's: %.600s", body)
		}
	}
	if len(begins) != 2 {
		t.Errorf("the calls begin with %v", begins)
	}
}

func TestNothingIsDoneForAChatWhoseClassIsGone(t *testing.T) {
	t.Parallel()
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
		e.Message != "ChatClass gone no longer exists" {
		t.Errorf("the error is %+v", e)
	}
	if n := len(p.models.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}
