// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/pods/modellimits"
)

// configured is a client that has ChatModelConfigs, and counts how often it is asked for one.
type configured struct {
	client.Client
	configs []v1beta1.ChatModelConfig
	asked   int
}

func (c *configured) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1beta1.ChatModelConfigList).Items = slices.Clone(c.configs)
	return nil
}

func (c *configured) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.asked++
	if found := modelconfig.Find(c.configs, key.Name); found != nil {
		*into.(*v1beta1.ChatModelConfig) = *found
		return nil
	}
	return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("chatmodelconfigs").GroupResource(), key.Name)
}

func modelConfig(name string, change func(*v1beta1.ChatModelConfigSpec)) v1beta1.ChatModelConfig {
	config := v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	config.Spec.Provider, config.Spec.Model = v1beta1.ProviderOpenAI, "gpt-4o" // It is known to hold 128000 tokens.
	if change != nil {
		change(&config.Spec)
	}
	return config
}

func TestServerConfirmsAnUnusableConfiguration(t *testing.T) {
	standIn := modelConfig("default", func(s *v1beta1.ChatModelConfigSpec) { s.Default = true })
	usable := modelConfig("own", nil)
	disabled := modelConfig("own", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true })
	type configs = []v1beta1.ChatModelConfig
	for name, c := range map[string]struct {
		cached, there configs
		policy        v1beta1.ModelConfigUnavailablePolicy
		asked         int
		want          string
		blocked       v1beta1.ErrorReason
	}{
		"usable":             {configs{usable}, nil, "", 0, "own", ""},
		"not cached yet":     {nil, configs{usable}, "", 1, "own", ""},
		"enabled since":      {configs{disabled}, configs{usable}, "", 1, "own", ""},
		"disabled":           {configs{disabled}, configs{disabled}, "", 1, "", v1beta1.ErrorModelConfigDisabled},
		"deleted since":      {configs{disabled}, nil, "", 1, "", v1beta1.ErrorModelConfigNotFound},
		"absent":             {nil, nil, "", 1, "", v1beta1.ErrorModelConfigNotFound},
		"absent, a stand-in": {nil, nil, v1beta1.ModelConfigUnavailableUseDefault, 1, "default", ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := &configured{configs: c.there}
			cached := &configured{configs: append(c.cached, standIn)}
			r := &modelReader{cache: cached, live: live, calls: modellimits.NewGate()}
			chat := &v1beta1.Chat{Spec: v1beta1.ChatSpec{ModelConfigRef: &v1beta1.ModelConfigReference{Name: "own"},
				WhenModelConfigUnavailable: c.policy}}
			s := &scope{facts: plan.Facts{Chat: chat, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
			if err := r.readModel(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := r.namedConfig(t.Context(), s, "own"); err != nil { // It does not ask again.
				t.Fatal(err)
			}
			if live.asked != c.asked || (c.want == "") != (s.facts.Model == nil) ||
				s.facts.Model != nil && s.facts.Model.Config != c.want ||
				s.facts.Blocked != nil && s.facts.Blocked.Reason != c.blocked {
				t.Errorf("asked %d times, %+v answers, blocked by %v", live.asked, s.facts.Model, s.facts.Blocked)
			}
		})
	}
}

func TestConfiguredLimitOfTheSummariserCounts(t *testing.T) {
	gave := func(tokens int64) func(*v1beta1.ChatModelConfigSpec) {
		return func(s *v1beta1.ChatModelConfigSpec) { s.ContextLimit = &tokens }
	}
	unknown := func(s *v1beta1.ChatModelConfigSpec) { s.Model = "somebodys-own" }
	type is struct {
		limit  modelconfig.Limit
		config string
	}
	known := is{modelconfig.Limit{Tokens: 128_000, Source: v1beta1.ContextLimitKnownModel}, "main"}
	for name, c := range map[string]struct {
		main, summarizer func(*v1beta1.ChatModelConfigSpec)
		want             is
	}{
		"a smaller one": {gave(100_000), gave(50_000),
			is{modelconfig.Limit{Tokens: 50_000, Source: v1beta1.ContextLimitConfigured}, "summarizer"}},
		"a larger one": {gave(50_000), gave(100_000),
			is{modelconfig.Limit{Tokens: 50_000, Source: v1beta1.ContextLimitConfigured}, "main"}},
		"a smaller one of the table": {gave(200_000), nil,
			is{modelconfig.Limit{Tokens: 200_000, Source: v1beta1.ContextLimitConfigured}, "main"}},
		"the only one, of the table": {unknown, nil, is{modelconfig.Limit{}, "main"}},
		"the only one": {unknown, gave(50_000),
			is{modelconfig.Limit{Tokens: 50_000, Source: v1beta1.ContextLimitConfigured}, "summarizer"}},
		"none, and the chat's is known": {nil, unknown, known},
	} {
		main, summarizer := modelConfig("main", c.main), modelConfig("summarizer", c.summarizer)
		main.Spec.Compaction = &v1beta1.CompactionPolicy{ModelConfigRef: &v1beta1.ModelConfigReference{Name: "summarizer"}}
		m := plan.ModelOf([]v1beta1.ChatModelConfig{main, summarizer}, &main, &v1beta1.Chat{})
		if got := (is{m.ContextLimit, m.ContextLimitConfig}); got != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
