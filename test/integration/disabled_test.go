// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func changeConfig(t *testing.T, ns, name string, change func(*v1beta1.ChatModelConfigSpec)) {
	t.Helper()
	config := configIn(t, ns, name)
	before := config.DeepCopy()
	change(&config.Spec)
	check.OK(t, cluster.Client.Patch(t.Context(), config, client.MergeFrom(before)))
}

func naming(ns, name, config string, policy v1beta1.ModelConfigUnavailablePolicy) *v1beta1.Chat {
	chat := newChat(ns, name, "hello")
	chat.Spec.ModelConfigRef, chat.Spec.WhenModelConfigUnavailable = &v1beta1.ModelConfigReference{Name: config}, policy
	return chat
}

func TestDisabledConfigurationHoldsTheChatUntilEnabled(t *testing.T) {
	ns := parallel(t)
	create(t, modelConfig(ns, "off", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true }))
	eventually(t, "the configuration says that it is disabled", func() bool {
		ready := meta.FindStatusCondition(configIn(t, ns, "off").Status.Conditions, v1beta1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionTrue && v1beta1.ReasonOf(ready) == v1beta1.ReasonDisabled
	})
	create(t, naming(ns, "c", "off", ""))
	eventually(t, "the chat says what is disabled", func() bool {
		ready := meta.FindStatusCondition(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionFalse &&
			ready.Reason == string(v1beta1.ErrorModelConfigDisabled) &&
			strings.Contains(ready.Message, "ChatModelConfig off, which spec.modelConfigRef names, is disabled")
	})
	waitForMessage(t, ns, "c-prompt", metav1.ConditionUnknown, v1beta1.ReasonWaitingForChat)
	changeConfig(t, ns, "off", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = false })
	check.Equal(t, "generation", "off", assigned(t, ns, "c", 1, 1).Status.Generation.ModelConfig)
}

func TestDefaultAnswersForADisabledConfiguration(t *testing.T) {
	ns := parallel(t)
	create(t, modelConfig(ns, "own"))
	create(t, naming(ns, "c", "own", v1beta1.ModelConfigUnavailableUseDefault))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	fallback := func() *metav1.Condition {
		return meta.FindStatusCondition(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionModelConfigFallback)
	}
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	check.Equal(t, "fallback of the chat", nil, fallback())
	changeConfig(t, ns, "own", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true })
	eventually(t, "the operator has seen that it is disabled", func() bool {
		config := configIn(t, ns, "own")
		return config.Status.ObservedGeneration == config.Generation
	})
	create(t, say(ns, "c", "second"))
	second := assigned(t, ns, "c", 3, 1)
	defaultModel := configIn(t, ns, "default").Spec.Model
	check.Equal(t, "generation", []any{"default", defaultModel},
		[]any{second.Status.Generation.ModelConfig, second.Status.Model})
	if c := fallback(); c == nil || c.Status != metav1.ConditionTrue ||
		c.Reason != string(v1beta1.ErrorModelConfigDisabled) ||
		!strings.HasSuffix(c.Message, ": ChatModelConfig default, the namespace's default, answers instead") {
		t.Errorf("the chat says %+v", c)
	}
	answers(t, second, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)

	// A message that names one that is gone is answered by the chat's model, which is the default for now.
	create(t, sayTo(ns, "c", "third", "gone", ""))
	third := assigned(t, ns, "c", 5, 1)
	if c := fallback(); third.Status.Generation.ModelConfig != "default" || c == nil ||
		c.Reason != string(v1beta1.ErrorModelConfigNotFound) {
		t.Errorf("generation %+v, %+v", third.Status.Generation, c)
	}
	answers(t, third, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	waitForMessage(t, ns, "third", metav1.ConditionTrue, v1beta1.ReasonAnswered) // An open one would wake the chat.
	eventually(t, "the chat at rest says why its own does not answer", func() bool {
		c := fallback()
		return c != nil && c.Reason == string(v1beta1.ErrorModelConfigDisabled)
	})
	changeConfig(t, ns, "own", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = false })
	eventually(t, "the chat at rest sees that its own can be used", func() bool { return fallback() == nil })
	create(t, say(ns, "c", "fourth"))
	if g := assigned(t, ns, "c", 7, 1).Status.Generation; g.ModelConfig != "own" || fallback() != nil {
		t.Errorf("generation %+v, %+v", g, fallback())
	}
}

func TestADisabledFallbackIsNotAsked(t *testing.T) {
	ns := parallel(t)
	create(t, modelConfig(ns, "off", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true }))
	create(t, modelConfig(ns, "on"))
	changeConfig(t, ns, "default", func(s *v1beta1.ChatModelConfigSpec) {
		s.Fallbacks = []v1beta1.ModelConfigReference{{Name: "off"}, {Name: "on"}}
	})
	answers(t, started(t, ns, "c", "hello"), chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	check.Equal(t, "generation", "on", assigned(t, ns, "c", 1, 2).Status.Generation.ModelConfig)
}

func TestAConfigurationSaysHowMuchItsContextHolds(t *testing.T) {
	ns := parallelBare(t)
	keyed := func(provider v1beta1.ModelProvider, model string) func(*v1beta1.ChatModelConfigSpec) {
		return func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider, s.Model, s.BaseURL = provider, model, ""
			s.APIKey = &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "keys", Key: "key"}}
		}
	}
	create(t, modelConfig(ns, "known", keyed(v1beta1.ProviderAnthropic, "claude-sonnet-4-5")))
	create(t, modelConfig(ns, "said", func(s *v1beta1.ChatModelConfigSpec) { s.ContextLimit = new(int64(8192)) }))
	create(t, modelConfig(ns, "unknown"))
	for name, want := range map[string]v1beta1.ChatModelConfigStatus{
		"known":   {ContextLimit: 200_000, ContextLimitSource: v1beta1.ContextLimitKnownModel},
		"said":    {ContextLimit: 8192, ContextLimitSource: v1beta1.ContextLimitConfigured},
		"unknown": {},
	} {
		eventually(t, "ChatModelConfig "+name+" has a status",
			func() bool { return configIn(t, ns, name).Status.ObservedGeneration > 0 })
		st := configIn(t, ns, name).Status
		unknown := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionContextLimitUnknown)
		if st.ContextLimit != want.ContextLimit || st.ContextLimitSource != want.ContextLimitSource ||
			(unknown != nil) != (want.ContextLimit == 0) {
			t.Errorf("%s says %d, %s, %+v", name, st.ContextLimit, st.ContextLimitSource, unknown)
		}
	}
}

// The pods play a provider that says how much its model's context holds.
func TestLearnedContextLimitIsKeptAndCompactedBy(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "hello"), chattest.Says("Fine."), chattest.Fills(7000, 1))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, say(ns, "c", "second"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Fails(v1beta1.ErrorContextTooLong,
		func(e *v1beta1.GenerationError) { e.ContextLimit = 8192 }))
	compacting := assigned(t, ns, "c", 4, 1)
	learned, cause := compacting.Status.Internal.LearnedContextLimit, compacting.Status.Internal.Attempt.Compaction
	if learned == nil || learned.ModelConfig != "default" || learned.Tokens != 8192 {
		t.Errorf("learned %+v", learned)
	}
	if cause == nil || cause.ThresholdPercent != 70 || cause.ContextTokens != 7000 {
		t.Errorf("the cause is %+v", cause)
	}
	answers(t, compacting, chattest.Compacts("They greeted.", chattest.From(2),
		func(a *v1beta1.CompactionAccount) { a.Source = v1beta1.CompactionContextTooLong }))
	answers(t, assigned(t, ns, "c", 5, 1), chattest.Says("Fine."), chattest.Fills(6000, 2),
		chattest.Compacted())
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, say(ns, "c", "third")) // 6000 are more than 70 % of 8192.
	third := assigned(t, ns, "c", 7, 1).Status
	want := v1beta1.CompactionCause{ThresholdPercent: 70, UsagePercent: 73, ContextTokens: 6000, ContextLimit: 8192}
	if got := third.Internal.Attempt.Compaction; third.Generation.Action != v1beta1.ActionCompact || got == nil ||
		*got != want {
		t.Errorf("generation %+v, %+v", third.Generation, got)
	}
}
