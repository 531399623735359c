// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestEffortOfATurnHasAMost(t *testing.T) {
	settings := &v1beta1.ReasoningEffortSettings{Default: v1beta1.EffortLow, Max: v1beta1.EffortHigh}
	for _, c := range []struct {
		settings    *v1beta1.ReasoningEffortSettings
		asked, want v1beta1.ReasoningEffort
	}{
		{nil, "", ""},
		{nil, v1beta1.EffortMax, v1beta1.EffortMax},
		{settings, "", v1beta1.EffortLow},
		{settings, v1beta1.EffortNone, v1beta1.EffortNone},
		{settings, v1beta1.EffortHigh, v1beta1.EffortHigh},
		{settings, v1beta1.EffortXHigh, v1beta1.EffortHigh},
		{&v1beta1.ReasoningEffortSettings{Max: v1beta1.EffortNone}, "", ""},
		{&v1beta1.ReasoningEffortSettings{Max: v1beta1.EffortNone}, v1beta1.EffortMinimal, v1beta1.EffortNone},
	} {
		check.Equal(t, "the effort", c.want, c.settings.Effort(c.asked))
	}
}

func TestClaudeGetsTheEffortThatItsVersionKnows(t *testing.T) {
	for _, model := range []string{
		"claude-3-7-sonnet-latest", "claude-sonnet-4-20250514", "claude-opus-4-1", "claude-opus-4-5",
		"claude-haiku-4-5-20251001",
		"eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929", "claude-sonnet-4-0", "glm-4.6",
		"claude-opus-4-5-latest",
	} {
		check.Equal(t, model, "enabled 8000 ", claudeSent(t, model, 10_000, v1beta1.EffortHigh, ""))
	}
	for _, model := range []string{"claude-opus-4-6", "claude-sonnet-4-6-20260101", "claude-opus-4-10", "claude-sonnet-5",
		"anthropic.claude-opus-4-7-v1:0", "claude-mythos-preview"} {
		check.Equal(t, model, "adaptive 0 high", claudeSent(t, model, 10_000, v1beta1.EffortHigh, ""))
	}
	check.Equal(t, "none", " 0 ", claudeSent(t, "claude-sonnet-4-5", 10_000, v1beta1.EffortNone, ""))
}

func TestThinkingBudgetLeavesRoomForTheAnswer(t *testing.T) {
	for maxTokens, want := range map[int64]int64{2_000_000: 128_000, 2000: 1900, 1100: 1045, 1030: 1024, 1025: 1024} {
		got := claudeSent(t, "claude-sonnet-4-5", maxTokens, v1beta1.EffortMax, "")
		check.Equal(t, maxTokens, fmt.Sprintf("enabled %d ", want), got)
	}
	got := claudeSent(t, "claude-sonnet-4-5", 1024, v1beta1.EffortHigh, "")
	check.Equal(t, "without room", " 0 , temperature 0.5, without reasoningEffort", got)
}

func TestThinkingBudgetOfOptionsLeavesRoomToAnswer(t *testing.T) {
	const budget = `{"anthropic":{"thinking":{"budgetTokens":10000}}}`
	const without = " 0 , temperature 0.5, without thinking.budgetTokens"
	for maxTokens, want := range map[int64]string{4000: without, 10_000: without, 10_001: "enabled 10000 "} {
		check.Equal(t, maxTokens, want, claudeSent(t, "claude-sonnet-4-5", maxTokens, "", budget))
	}
}

// claudeSent is what a request says of thinking, and, unless the model thinks, its temperature and what it leaves out.
func claudeSent(t *testing.T, model string, maxTokens int64, effort v1beta1.ReasoningEffort, given string) string {
	t.Helper()
	spec := providertest.Claude.Spec("")
	spec.Model, spec.MaxOutputTokens, spec.Temperature = model, &maxTokens, new(0.5)
	if given != "" {
		spec.ProviderOptions = options(given)
	}
	_, text, _ := strings.Cut(recordRequest(t, spec, effort), "\n\n")
	text, warnings, _ := strings.Cut(text, "\n\nwarning: ")
	var sent struct {
		Temperature float64
		Thinking    struct {
			Type   string
			Budget int64 `json:"budget_tokens"`
		}
		Output struct{ Effort string } `json:"output_config"`
	}
	check.OK(t, json.Unmarshal([]byte(text), &sent))
	got := fmt.Sprintf("%s %d %s", sent.Thinking.Type, sent.Thinking.Budget, sent.Output.Effort)
	if setting, _, _ := strings.Cut(warnings, " "); setting != "" && setting != "temperature" {
		got += fmt.Sprintf(", temperature %v, without %s", sent.Temperature, setting)
	}
	return got
}

func TestGeminiGetsABudgetOrALevel(t *testing.T) {
	for _, c := range []struct {
		model  string
		effort v1beta1.ReasoningEffort
		budget float64
		level  string
	}{
		{"gemini-2.5-flash-lite", v1beta1.EffortNone, 512, ""},
		{"gemini-2.5-pro", v1beta1.EffortLow, 1024, ""},
		{"gemini-2.5-pro", v1beta1.EffortMax, 24576, ""},
		{"gemini-3-flash-preview", v1beta1.EffortNone, 0, "MINIMAL"},
		{"gemini-3-pro-preview", v1beta1.EffortNone, 0, "LOW"},
		{"gemini-flash-latest", v1beta1.EffortXHigh, 0, "HIGH"},
	} {
		spec := providertest.Gemini.Spec("")
		spec.Model = c.model
		want := map[string]any{}
		if c.level != "" {
			want["thinkingLevel"] = c.level
		} else {
			want["thinkingBudget"] = c.budget
		}
		if c.effort != v1beta1.EffortNone {
			want["includeThoughts"] = true
		}
		_, body, _ := strings.Cut(recordRequest(t, spec, c.effort), "\n\n")
		var got struct {
			GenerationConfig struct{ ThinkingConfig map[string]any }
		}
		check.OK(t, json.NewDecoder(strings.NewReader(body)).Decode(&got))
		check.Equal(t, c.model, want, got.GenerationConfig.ThinkingConfig)
	}
}

// Security (a search of a provider): can leak data: the model's search terms leave the cluster with what it knows, and
// no one can approve a search; To stop that, offer none: by tools.deny, or by tools.approval, which a provider does not
// wait for.
func TestPolicyBoundsTheToolsOfTheProvider(t *testing.T) {
	claude := v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAnthropic}
	patterns := func(p ...v1beta1.ToolPattern) []v1beta1.ToolPattern { return p }
	for name, c := range map[string]struct {
		spec   v1beta1.ChatModelConfigSpec
		policy v1beta1.ToolPolicy
		left   v1beta1.ProviderToolReason
	}{
		"no policy":               {claude, v1beta1.ToolPolicy{}, ""},
		"a policy that allows it": {claude, v1beta1.ToolPolicy{Allow: patterns("web_*")}, ""},
		"one that allows others":  {claude, v1beta1.ToolPolicy{Allow: patterns("execute")}, v1beta1.ProviderToolNotAllowed},
		"one that denies it":      {claude, v1beta1.ToolPolicy{Deny: patterns("*")}, v1beta1.ProviderToolNotAllowed},
		"one that has it approved": {claude, v1beta1.ToolPolicy{Approval: patterns("web_search")},
			v1beta1.ProviderToolNeedsApproval},
		"OpenAI's Responses": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAI,
			Transport: v1beta1.TransportResponses}, v1beta1.ToolPolicy{}, ""},
		"Azure's Responses": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAzure,
			Transport: v1beta1.TransportResponses}, v1beta1.ToolPolicy{}, ""},
		"OpenAI's chat protocol": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAI}, v1beta1.ToolPolicy{},
			v1beta1.ProviderToolNotSupported},
		"Google": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderGoogle}, v1beta1.ToolPolicy{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			own, left := provider.OwnTools(&c.spec, &v1beta1.ChatTools{ToolPolicy: c.policy,
				Provider: []v1beta1.ProviderTool{v1beta1.ProviderWebSearch}})
			why := v1beta1.ProviderToolReason("")
			if len(left) == 1 {
				why = left[0].Reason
			}
			check.Equal(t, "why not, is offered", []any{c.left, c.left == ""}, []any{why, len(own) == 1})
		})
	}
}
