// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"slices"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

// askWith begins a turn with a configuration and an effort.
func (c *conversation) askWith(config string, effort v1alpha1.ReasoningEffort) {
	c.t.Helper()
	c.say(c.chat.Name+"-u", "hello")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: c.chat.Name + "-u", ModelConfig: config, ReasoningEffort: effort}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: c.chat.Name + "-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
		s.Generation.ModelConfig = config
	})
}

// configured creates a configuration of the pod's model server.
func (p *pod) configured(name string, change func(*v1alpha1.ChatModelConfigSpec)) {
	p.t.Helper()
	right, err := p.configOf("default")
	if err != nil {
		p.t.Fatal(err)
	}
	config := modelConfig(p.ns, name, right.Spec.BaseURL)
	change(&config.Spec)
	create(p.t, config)
}

func TestSettingsOfTheModelAndOfTheTurnReachTheProvider(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	p.configured("set", func(s *v1alpha1.ChatModelConfigSpec) {
		s.Provider, s.TopK, s.TopP = v1alpha1.ProviderOpenAI, new(int64(5)), new(0.5)
		s.ReasoningEffort = &v1alpha1.ReasoningEffortSettings{Default: v1alpha1.EffortLow, Max: v1alpha1.EffortHigh}
		s.ProviderOptions = &v1alpha1.ProviderOptions{OpenAI: &v1alpha1.OpenAIOptions{User: "u-1"}}
		s.Pricing = &v1alpha1.Pricing{Currency: "USD", InputPerMillion: "2", OutputPerMillion: "3", CacheReadPerMillion: "0"}
	})
	for name, c := range map[string]struct {
		chat, asked v1alpha1.ReasoningEffort
		want        string
	}{
		"plain":      {"", "", "low"},
		"none":       {"", v1alpha1.EffortNone, "none"},
		"beyond":     {"", v1alpha1.EffortMax, "high"},
		"chat":       {v1alpha1.EffortMedium, "", "medium"},
		"message":    {v1alpha1.EffortMedium, v1alpha1.EffortMinimal, "minimal"},
		"chatbeyond": {v1alpha1.EffortMax, "", "high"},
	} {
		t.Run(name, func(t *testing.T) {
			chat := p.newChat("chat-"+name, func(s *v1alpha1.ChatSpec) { s.ReasoningEffort = c.chat })
			chat.askWith("set", c.asked)
			g := chat.result().Spec.Generation
			var sent struct {
				Effort string  `json:"reasoning_effort"`
				User   string  `json:"user"`
				TopP   float64 `json:"top_p"`
			}
			records := p.models.Requests()
			if err := json.Unmarshal(records[len(records)-1].Body, &sent); err != nil {
				t.Fatal(err)
			}
			if sent.Effort != c.want || sent.User != "u-1" || sent.TopP != 0.5 {
				t.Errorf("sent %+v", sent)
			}
			if want := []string{"topK was left out: the provider does not take it"}; !slices.Equal(g.Warnings, want) {
				t.Errorf("warnings %q", g.Warnings)
			}
			u := g.Usage
			if u == nil || g.Cost == nil || g.Cost.Currency != "USD" ||
				g.Cost.MicroUnits != 2*(u.InputTokens+u.CacheWriteTokens)+3*u.OutputTokens || g.Cost.MicroUnits == 0 {
				t.Errorf("usage %+v, cost %+v", u, g.Cost)
			}
		})
	}
}

func TestAModelWithoutPricesCostsNothingThatIsKnown(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	c := p.newChat("c", nil)
	c.ask("u", "hello")
	if g := c.result().Spec.Generation; g.Cost != nil || g.Usage == nil || len(g.Warnings) != 0 {
		t.Errorf("got %+v", g)
	}
}
