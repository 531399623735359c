// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/modelconfig"
	"parley.dev/parley/internal/modellimits"
	"parley.dev/parley/internal/testing/chattest"
)

// configured is a client that lists ChatModelConfigs, and counts how often.
type configured struct {
	client.Client
	configs []v1alpha1.ChatModelConfig
	lists   int
}

func (c *configured) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*v1alpha1.ChatModelConfigList); ok {
		c.lists++
		list.Items = c.configs
	}
	return nil
}

func modelConfig(name string, change func(*v1alpha1.ChatModelConfigSpec)) v1alpha1.ChatModelConfig {
	config := v1alpha1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	config.Spec.Provider, config.Spec.Model = v1alpha1.ProviderOpenAI, "gpt-4o" // It is known to hold 128000 tokens.
	if change != nil {
		change(&config.Spec)
	}
	return config
}

func TestServerIsAskedForAnUncachedConfigurationAlone(t *testing.T) {
	standIn := modelConfig("default", func(s *v1alpha1.ChatModelConfigSpec) { s.Default = true })
	for name, c := range map[string]struct {
		named []v1alpha1.ChatModelConfig
		want  int
	}{
		"it can be used": {[]v1alpha1.ChatModelConfig{modelConfig("own", nil)}, 0},
		"it is disabled": {[]v1alpha1.ChatModelConfig{modelConfig("own",
			func(s *v1alpha1.ChatModelConfigSpec) { s.Disabled = true })}, 0},
		"it does not exist": {nil, 1},
	} {
		configs := append([]v1alpha1.ChatModelConfig{standIn}, c.named...)
		live := &configured{configs: configs}
		cached := &configured{configs: configs}
		g := &modelReader{cache: cached, fresh: freshReaderOf(cached, live), calls: modellimits.NewGate()}
		chat := &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{
			ModelConfigRef:             &v1alpha1.ModelConfigReference{Name: "own"},
			WhenModelConfigUnavailable: v1alpha1.ModelConfigUnavailableUseDefault,
		}}
		s := &scope{}
		s.facts.Chat, s.facts.Now = chat, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := g.readModel(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if live.lists != c.want || s.facts.Model == nil {
			t.Errorf("%s: the API server was asked %d times, and %+v answers", name, live.lists, s.facts.Model)
		}
	}
}

func TestConfiguredLimitOfTheSummariserCounts(t *testing.T) {
	gave := func(tokens int64) func(*v1alpha1.ChatModelConfigSpec) {
		return func(s *v1alpha1.ChatModelConfigSpec) { s.ContextLimit = &tokens }
	}
	unknown := func(s *v1alpha1.ChatModelConfigSpec) { s.Model = "somebodys-own" }
	type is struct {
		limit  modelconfig.Limit
		config string
	}
	known := is{modelconfig.Limit{Tokens: 128_000, Source: v1alpha1.ContextLimitKnownModel}, "main"}
	for name, c := range map[string]struct {
		main, summarizer func(*v1alpha1.ChatModelConfigSpec)
		want             is
	}{
		"a smaller one": {gave(100_000), gave(50_000),
			is{modelconfig.Limit{Tokens: 50_000, Source: v1alpha1.ContextLimitConfigured}, "summarizer"}},
		"a larger one": {gave(50_000), gave(100_000),
			is{modelconfig.Limit{Tokens: 50_000, Source: v1alpha1.ContextLimitConfigured}, "main"}},
		"a smaller one of the table": {gave(200_000), nil,
			is{modelconfig.Limit{Tokens: 200_000, Source: v1alpha1.ContextLimitConfigured}, "main"}},
		"the only one, of the table": {unknown, nil, is{modelconfig.Limit{}, "main"}},
		"the only one": {unknown, gave(50_000),
			is{modelconfig.Limit{Tokens: 50_000, Source: v1alpha1.ContextLimitConfigured}, "summarizer"}},
		"none, and the chat's is known": {nil, unknown, known},
	} {
		main, summarizer := modelConfig("main", c.main), modelConfig("summarizer", c.summarizer)
		main.Spec.Compaction = &v1alpha1.CompactionPolicy{ModelConfigRef: &v1alpha1.ModelConfigReference{Name: "summarizer"}}
		m := plan.ModelOf([]v1alpha1.ChatModelConfig{main, summarizer}, &main, &v1alpha1.Chat{})
		if got := (is{m.ContextLimit, m.ContextLimitConfig}); got != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestAModelIsLookedForAgainForWhatWasWrittenSince(t *testing.T) {
	for name, c := range map[string]struct {
		asOf, basis   string
		live, answers bool
		asked         int
	}{
		"nothing is known":                  {"", "20", false, false, 1},
		"they are newer":                    {"21", "20", false, false, 0},
		"they are as new":                   {"20", "20", false, false, 0},
		"a message was written since":       {"20", "21", false, false, 1},
		"a turn may fail":                   {"21", "20", false, true, 1},
		"the API server has told already":   {"21", "20", true, true, 0},
		"it has told before a message came": {"20", "21", true, true, 1},
	} {
		live := &view{version: "30", configs: []v1alpha1.ChatModelConfig{modelConfig("fast", nil)}}
		r := &modelReader{fresh: freshReaderOf(&view{}, live), calls: modellimits.NewGate()}
		s := &scope{configsAsOf: c.asOf, configsLive: c.live, basis: c.basis}
		s.facts.Chat = chattest.In("ns", chattest.Chat("c"))
		found, err := r.namedConfig(t.Context(), s, "fast", c.answers)
		if err != nil || live.asked != c.asked || (found != nil) != (c.asked > 0) {
			t.Errorf("%s: the API server was asked %d times, and %v was found: %v", name, live.asked, found, err)
		}
	}
}
