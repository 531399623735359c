// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"charm.land/fantasy/providers/anthropic"
	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/testing/providertest"
)

func TestTheEffortOfATurnIsTheMessagesUpToTheMost(t *testing.T) {
	settings := &v1alpha1.ReasoningEffortSettings{Default: v1alpha1.EffortLow, Max: v1alpha1.EffortHigh}
	for _, c := range []struct {
		settings    *v1alpha1.ReasoningEffortSettings
		asked, want v1alpha1.ReasoningEffort
	}{
		{nil, "", ""},
		{nil, v1alpha1.EffortMax, v1alpha1.EffortMax},
		{settings, "", v1alpha1.EffortLow},
		{settings, v1alpha1.EffortNone, v1alpha1.EffortNone},
		{settings, v1alpha1.EffortHigh, v1alpha1.EffortHigh},
		{settings, v1alpha1.EffortXHigh, v1alpha1.EffortHigh},
		{&v1alpha1.ReasoningEffortSettings{Max: v1alpha1.EffortNone}, "", ""},
		{&v1alpha1.ReasoningEffortSettings{Max: v1alpha1.EffortNone}, v1alpha1.EffortMinimal, v1alpha1.EffortNone},
	} {
		if got := c.settings.Effort(c.asked); got != c.want {
			t.Errorf("%+v, %s: got %q, want %q", c.settings, c.asked, got, c.want)
		}
	}
}

func TestClaudeGetsTheEffortThatItsVersionKnows(t *testing.T) {
	for _, model := range []string{
		"claude-3-7-sonnet-latest", "claude-sonnet-4-20250514", "claude-opus-4-1", "claude-opus-4-5",
		"claude-haiku-4-5-20251001",
		"eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929", "claude-sonnet-4-0", "glm-4.6",
		"claude-opus-4-5-latest",
	} {
		if o := claudeOptions(t, model, 10_000, v1alpha1.EffortHigh); o.Effort != nil || o.Thinking == nil ||
			o.Thinking.BudgetTokens != 8000 {
			t.Errorf("%s: %+v", model, o)
		}
	}
	for _, model := range []string{"claude-opus-4-6", "claude-sonnet-4-6-20260101", "claude-opus-4-10", "claude-sonnet-5",
		"anthropic.claude-opus-4-7-v1:0", "claude-mythos-preview"} {
		if o := claudeOptions(t, model, 10_000, v1alpha1.EffortHigh); o.Effort == nil || *o.Effort != anthropic.EffortHigh ||
			o.Thinking != nil {
			t.Errorf("%s: %+v", model, o)
		}
	}
	if o := claudeOptions(t, "claude-sonnet-4-5", 10_000, v1alpha1.EffortNone); o.Thinking != nil || o.Effort != nil {
		t.Errorf("none: %+v", o)
	}
}

func TestABudgetForThinkingLeavesRoomForTheAnswer(t *testing.T) {
	for maxTokens, want := range map[int64]int64{2_000_000: 128_000, 2000: 1900, 1100: 1045, 1030: 1024, 1025: 1024} {
		if got := claudeOptions(t, "claude-sonnet-4-5", maxTokens, v1alpha1.EffortMax); got.Thinking.BudgetTokens != want {
			t.Errorf("of %d: %d", maxTokens, got.Thinking.BudgetTokens)
		}
	}
	spec := providertest.Claude.Spec("")
	spec.Model, spec.MaxOutputTokens = "claude-sonnet-4-5", new(int64(1024))
	call, warnings := provider.Call(spec, v1alpha1.EffortHigh)
	if call.ProviderOptions[anthropic.Name].(*anthropic.ProviderOptions).Thinking != nil ||
		len(warnings) != 1 || warnings[0].Setting != "reasoningEffort" {
		t.Errorf("without room: %v", warnings)
	}
}

func TestABudgetForThinkingOfTheOptionsLeavesRoomForTheAnswer(t *testing.T) {
	for maxTokens, kept := range map[int64]bool{4000: false, 10_000: false, 10_001: true} {
		spec := providertest.Claude.Spec("")
		spec.MaxOutputTokens, spec.Temperature = &maxTokens, new(0.5)
		spec.ProviderOptions = options(`{"anthropic":{"thinking":{"budgetTokens":10000}}}`)
		call, warnings := provider.Call(spec, "")
		if thinks := call.ProviderOptions[anthropic.Name].(*anthropic.ProviderOptions).Thinking != nil; thinks != kept {
			t.Errorf("of %d: it thinks: %v", maxTokens, thinks)
		}
		if warned := len(warnings) == 1 && warnings[0].Setting == "thinking.budgetTokens"; warned == kept ||
			call.Temperature == nil {
			t.Errorf("of %d: %v", maxTokens, warnings)
		}
	}
}

func claudeOptions(t *testing.T, model string, maxTokens int64,
	effort v1alpha1.ReasoningEffort) *anthropic.ProviderOptions {
	t.Helper()
	spec := providertest.Claude.Spec("")
	spec.Model, spec.MaxOutputTokens = model, &maxTokens
	call, _ := provider.Call(spec, effort)
	return call.ProviderOptions[anthropic.Name].(*anthropic.ProviderOptions)
}

func TestGeminiGetsABudgetOrALevel(t *testing.T) {
	for _, c := range []struct {
		model  string
		effort v1alpha1.ReasoningEffort
		budget float64
		level  string
	}{
		{"gemini-2.5-flash-lite", v1alpha1.EffortNone, 512, ""},
		{"gemini-2.5-pro", v1alpha1.EffortLow, 1024, ""},
		{"gemini-2.5-pro", v1alpha1.EffortMax, 24576, ""},
		{"gemini-3-flash-preview", v1alpha1.EffortNone, 0, "MINIMAL"},
		{"gemini-3-pro-preview", v1alpha1.EffortNone, 0, "LOW"},
		{"gemini-flash-latest", v1alpha1.EffortXHigh, 0, "HIGH"},
	} {
		spec := providertest.Gemini.Spec("")
		spec.Model = c.model
		want := map[string]any{}
		if c.level != "" {
			want["thinkingLevel"] = c.level
		} else {
			want["thinkingBudget"] = c.budget
		}
		if c.effort != v1alpha1.EffortNone {
			want["includeThoughts"] = true
		}
		_, body, _ := strings.Cut(recordRequest(t, spec, c.effort), "\n\n")
		var got struct {
			GenerationConfig struct{ ThinkingConfig map[string]any }
		}
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.GenerationConfig.ThinkingConfig); diff != "" {
			t.Errorf("%s with %s: -want +got\n%s", c.model, c.effort, diff)
		}
	}
}
