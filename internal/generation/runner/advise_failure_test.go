// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/test/modelserver"
)

func TestAnAdvisorThatFailsIsTheModelsToCopeWith(t *testing.T) {
	t.Parallel()
	failing := func(status int) modelserver.Reply {
		return modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: status,
			Message: "You said: Clean up the archive. Key " + rightKey}}
	}
	for name, c := range map[string]struct {
		reply  modelserver.Reply
		config func(*v1alpha1.ChatModelConfigSpec)
		chat   func(*v1alpha1.ChatSpec)
		want   string
		status func(*v1alpha1.ChatStatus)
		asked  int
	}{
		"a refusal that passes": {reply: failing(429), want: "(RateLimited). Go on without its advice, or ask again later.",
			asked: 2},
		"one that does not": {reply: failing(400), want: "(RequestRejected). Go on without its advice. ", asked: 1},
		"nothing said": {reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Think("hm")}},
			want: "strong ended its reply without text", asked: 2},
		"nothing within the limit": {
			reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Think("hm")}, Finish: modelserver.FinishLength},
			want:  "Raise spec.advisor.maxOutputTokens", asked: 1,
		},
		"silence": {
			reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}, want: "(ProviderSilent)", asked: 1,
			config: func(s *v1alpha1.ChatModelConfigSpec) { s.SilenceTimeoutSeconds = new(int32(1)) },
		},
		"a wrong key": {
			reply: advises, want: "(AuthenticationFailed)",
			config: func(s *v1alpha1.ChatModelConfigSpec) { s.APIKey.SecretKeyRef.Key = "wrong" }, asked: 1,
		},
		"a missing key": {reply: advises, want: "(APIKeyMissing)",
			config: func(s *v1alpha1.ChatModelConfigSpec) { s.APIKey.SecretKeyRef.Key = "none" }},
		"no such model": {reply: advises, want: "(ModelConfigNotFound)",
			chat: func(s *v1alpha1.ChatSpec) { s.Advisor.ModelConfigRef.Name = "gone" }},
		"no price for the budget": {reply: advises, want: "has no prices in it", chat: func(s *v1alpha1.ChatSpec) {
			s.Limits = &v1alpha1.ChatLimits{Budget: &v1alpha1.Budget{Currency: "USD", Amount: "1"}}
		}},
		"a budget that is used up": {
			reply: advises, want: "(BudgetReached)",
			chat: func(s *v1alpha1.ChatSpec) {
				s.Limits = &v1alpha1.ChatLimits{Budget: &v1alpha1.Budget{Currency: "EUR", Amount: "1"}}
			},
			status: func(s *v1alpha1.ChatStatus) { s.Cost = []v1alpha1.Cost{{Currency: "EUR", MicroUnits: 1_000_000}} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startAdvisedPod(t, asksForAdvice(1, c.reply), c.config)
			chat := p.newChat("failing", func(s *v1alpha1.ChatSpec) {
				withAdvisor(s)
				if c.chat != nil {
					c.chat(s)
				}
			})
			if c.status != nil {
				chat.write(c.status)
			}
			chat.ask("failing-1", "Clean up the archive.")
			answer := chat.asked(chat.result())
			r, result := adviceOf(t, answer)
			if !r.IsError || result.Type != advisor.TypeError || result.RemainingUses != 3 ||
				!strings.Contains(result.Error, c.want) {
				t.Errorf("the result is %+v", r)
			}
			if answer.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted || len(p.requestsTo("strong")) != c.asked {
				t.Errorf("the outcome is %s after %d requests", answer.Spec.Generation.Outcome, len(p.requestsTo("strong")))
			}
			for _, secret := range []string{rightKey, "sk-wrong", "Clean up the archive"} {
				if strings.Contains(r.Output, secret) || strings.Contains(p.log.String(), secret) {
					t.Errorf("%q is told: %s; %s", secret, r.Output, p.log)
				}
			}
		})
	}
}

func TestAnInterruptionStopsTheAdvisor(t *testing.T) {
	t.Parallel()
	hangs := advises
	hangs.Fault = &modelserver.Fault{Kind: modelserver.FaultHang, After: new(1)}
	p := startAdvisedPod(t, asksForAdvice(1, hangs), nil)
	c := p.newChat("stopped", withAdvisor)
	c.ask("stopped-1", "Clean up the archive.")
	c.commit(c.result(), v1alpha1.ActionExecuteTools)
	c.eventually("the advisor is asked", func() bool { return len(p.requestsTo("strong")) == 1 })
	c.write(interrupt)
	answer := c.result()
	if r := answer.Spec.Parts[0].ToolResult; answer.Spec.Generation.Outcome != v1alpha1.OutcomeInterrupted || !r.IsError ||
		!strings.Contains(r.Output, "was interrupted") {
		t.Errorf("got %s, %+v", answer.Spec.Generation.Outcome, r)
	}
	p.eventually("the call is over", func() bool { return p.models.InFlight() == 0 })
}
