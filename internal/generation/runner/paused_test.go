// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

// The scripted model refuses a search whose result is missing, unless the reply that asked for it comes last.
func TestPausedReplyGoesBackUnchanged(t *testing.T) {
	t.Parallel()
	script := modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: modelserver.Reply{FinishReason: "pause_turn", Steps: searches.Rules[0].Reply.Steps[:2]}},
		{Times: 1, Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("14 million.")}}},
		searches.Rules[1],
	}}
	p, url := newPod(t, script)
	for _, w := range wireForms {
		if w.name == "anthropic" {
			create(t, w.config(p.ns, "default", url))
		}
	}
	p.launch(nil)
	c := p.newChat("paused", func(s *v1alpha1.ChatSpec) {
		s.Tools = &v1alpha1.ChatTools{Provider: []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch}}
	})
	c.ask("paused-1", "So how many live in Tokyo?")
	reply := c.result()
	if g := reply.Spec.Generation; g.ReplyOutcome != v1alpha1.ReplyPaused || g.FinishReason != "pause_turn" {
		t.Fatalf("the reply is %+v", g)
	}
	c.commit(reply, v1alpha1.ActionGenerateAssistant)
	continued := c.result()
	if g := continued.Spec.Generation; g.ReplyOutcome != v1alpha1.ReplyComplete || textOf(t, continued) != "14 million." {
		t.Fatalf("the reply continues as %+v", g)
	}
	if body := p.lastBody(); !strings.Contains(body, `"server_tool_use"`) || strings.Contains(body, "Go on.") ||
		strings.LastIndex(body, `"role":"assistant"`) < strings.LastIndex(body, `"role":"user"`) {
		t.Errorf("the model continues %s", body)
	}
	c.commit(continued, "")
	c.ask("paused-2", "Thanks.")
	if next := c.result(); next.Spec.Generation.Error != nil {
		t.Errorf("the next turn fails: %+v", next.Spec.Generation.Error)
	}
	if body := p.lastBody(); strings.Count(body, `"role":"assistant"`) != 1 || !strings.Contains(body, `"server_tool_use"`) {
		t.Errorf("the model is told %s", body)
	}
}
