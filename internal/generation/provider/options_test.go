// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"fmt"
	"testing"

	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/google"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider"
)

func TestAnOptionThatCannotBeUsedIsNamed(t *testing.T) {
	for _, c := range []struct {
		protocol protocol
		options  string
		want     string
	}{
		{chat, `{"temprature":1}`, "spec.providerOptions.temprature is not an option of provider openai: see the list in the documentation of ChatModelConfig"},
		{chat, `{"User":"x"}`, "spec.providerOptions.User is not an option of provider openai: see the list in the documentation of ChatModelConfig"},
		{chat, `{"max_tool_calls":1}`, "spec.providerOptions.max_tool_calls is not an option of provider openai: see the list in the documentation of ChatModelConfig"},
		{chat, `{"store":"my-value"}`, "spec.providerOptions.store must be true or false"},
		{chat, `{"top_log_probs":1.5}`, "spec.providerOptions.top_log_probs must be an integer"},
		{chat, `{"reasoning_effort":"enormous"}`, "spec.providerOptions.reasoning_effort must be none, minimal, low, medium, high, xhigh or max"},
		{responses, `{"logit_bias":{}}`, "spec.providerOptions.logit_bias is not an option of provider openai: see the list in the documentation of ChatModelConfig"},
		{responses, `{"previous_response_id":"r"}`, "spec.providerOptions.previous_response_id cannot be set: each call sends the whole conversation"},
		{responses, `{"include":"x"}`, "spec.providerOptions.include must be a list"},
		{claude, `{"thinking":{"budget":1}}`, "spec.providerOptions.thinking.budget is not an option of provider anthropic: see the list in the documentation of ChatModelConfig"},
		{claude, `{"thinking":{"budget_tokens":"lots"}}`, "spec.providerOptions.thinking.budget_tokens must be an integer"},
		{claude, `{"thinking":{}}`, "spec.providerOptions.thinking.budget_tokens must be above 0"},
		{claude, `{"thinking":5}`, "spec.providerOptions.thinking must be an object"},
		{gemini, `{"thinking_config":{"thinking_budget":1,"thinking_level":"LOW"}}`, "spec.providerOptions.thinking_config may have thinking_budget or thinking_level, not both"},
		{gemini, `{"safety_settings":[{"category":"a"},{"kategory":"b"}]}`, "spec.providerOptions.safety_settings.kategory is not an option of provider google: see the list in the documentation of ChatModelConfig"},
		{compatible, `{"user":5}`, "spec.providerOptions.user must be a string"},
		{protocol{v1alpha1.ProviderOpenRouter, ""}, `{"provider":{"sort":1}}`, "spec.providerOptions.provider.sort must be a string"},
		{protocol{v1alpha1.ProviderVercel, ""}, `{"byok":{}}`, "spec.providerOptions.byok cannot be set: a ChatModelConfig is no place for keys"},
		{protocol{v1alpha1.ProviderAzure, v1alpha1.TransportResponses}, `{"x":1}`, "spec.providerOptions.x is not an option of provider azure: see the list in the documentation of ChatModelConfig"},
		{protocol{v1alpha1.ProviderBedrock, ""}, `{"x":1}`, "spec.providerOptions.x is not an option of provider bedrock: see the list in the documentation of ChatModelConfig"},
	} {
		t.Run(fmt.Sprint(c.protocol, c.options), func(t *testing.T) {
			spec := c.protocol.spec("https://models.example.com")
			spec.ProviderOptions = options(c.options)
			_, _, err := provider.Call(spec, "")
			if _, ok := errors.AsType[*provider.OptionError](err); !ok || err.Error() != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnythingGoesInWhatTheProviderTakesAsItIs(t *testing.T) {
	for _, p := range []protocol{compatible, claude, {v1alpha1.ProviderOpenRouter, ""}, {v1alpha1.ProviderVercel, ""}} {
		spec := p.spec("https://models.example.com")
		spec.ProviderOptions = options(`{"extra_body":{"anything":{"at":["all"]}}}`)
		if _, _, err := provider.Call(spec, ""); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
}

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
		"claude-3-7-sonnet-latest", "claude-sonnet-4-20250514", "claude-opus-4-1", "claude-opus-4-5", "claude-haiku-4-5-20251001",
		"eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929", "claude-sonnet-4-0", "glm-4.6", "claude-opus-4-5-latest",
	} {
		if o := claudeOptions(t, model, 10_000, v1alpha1.EffortHigh); o.Effort != nil || o.Thinking == nil || o.Thinking.BudgetTokens != 8000 {
			t.Errorf("%s: %+v", model, o)
		}
	}
	for _, model := range []string{"claude-opus-4-6", "claude-sonnet-4-6-20260101", "claude-opus-4-10", "claude-sonnet-5", "anthropic.claude-opus-4-7-v1:0", "claude-mythos-preview"} {
		if o := claudeOptions(t, model, 10_000, v1alpha1.EffortHigh); o.Effort == nil || *o.Effort != anthropic.EffortHigh || o.Thinking != nil {
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
	spec := claude.spec("")
	spec.Model, spec.MaxOutputTokens = "claude-sonnet-4-5", new(int64(1024))
	call, warnings, err := provider.Call(spec, v1alpha1.EffortHigh)
	if err != nil || call.ProviderOptions[anthropic.Name].(*anthropic.ProviderOptions).Thinking != nil || len(warnings) != 1 || warnings[0].Setting != "reasoningEffort" {
		t.Errorf("without room: %v, %v", warnings, err)
	}
}

func claudeOptions(t *testing.T, model string, maxTokens int64, effort v1alpha1.ReasoningEffort) *anthropic.ProviderOptions {
	t.Helper()
	spec := claude.spec("")
	spec.Model, spec.MaxOutputTokens = model, &maxTokens
	call, _, err := provider.Call(spec, effort)
	if err != nil {
		t.Fatal(err)
	}
	return call.ProviderOptions[anthropic.Name].(*anthropic.ProviderOptions)
}

func TestGeminiGetsABudgetOrALevel(t *testing.T) {
	for _, c := range []struct {
		model  string
		effort v1alpha1.ReasoningEffort
		budget int64
		level  string
	}{
		{"gemini-2.5-flash-lite", v1alpha1.EffortNone, 512, ""},
		{"gemini-2.5-pro", v1alpha1.EffortLow, 1024, ""},
		{"gemini-2.5-pro", v1alpha1.EffortMax, 24576, ""},
		{"gemini-3-flash-preview", v1alpha1.EffortNone, 0, "MINIMAL"},
		{"gemini-3-pro-preview", v1alpha1.EffortNone, 0, "LOW"},
		{"gemini-flash-latest", v1alpha1.EffortXHigh, 0, "HIGH"},
	} {
		spec := gemini.spec("")
		spec.Model = c.model
		call, _, err := provider.Call(spec, c.effort)
		if err != nil {
			t.Fatal(err)
		}
		got := call.ProviderOptions[google.Name].(*google.ProviderOptions).ThinkingConfig
		if c.level == "" && (got.ThinkingLevel != nil || *got.ThinkingBudget != c.budget) || c.level != "" && (got.ThinkingBudget != nil || *got.ThinkingLevel != c.level) {
			t.Errorf("%s with %s: %+v", c.model, c.effort, got)
		}
		if (got.IncludeThoughts != nil) != (c.effort != v1alpha1.EffortNone) {
			t.Errorf("%s with %s: thoughts %v", c.model, c.effort, got.IncludeThoughts)
		}
	}
}

func TestNothingIsSentThatNobodySet(t *testing.T) {
	for _, p := range []protocol{chat, responses, compatible, claude, gemini, {v1alpha1.ProviderOpenRouter, ""}, {v1alpha1.ProviderVercel, ""}} {
		call, warnings, err := provider.Call(p.spec(""), "")
		if err != nil || call.ProviderOptions != nil || len(warnings) != 0 {
			t.Errorf("%v: %+v, %v, %v", p, call.ProviderOptions, warnings, err)
		}
	}
}
