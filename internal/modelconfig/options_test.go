// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelconfig"
)

func check(provider v1alpha1.ModelProvider, transport v1alpha1.ModelTransport,
	options string) *modelconfig.OptionError {
	return modelconfig.CheckOptions(&v1alpha1.ChatModelConfigSpec{
		Provider: provider, Transport: transport, ProviderOptions: &runtime.RawExtension{Raw: []byte(options)},
	})
}

func TestAnOptionThatCannotBeUsedIsNamed(t *testing.T) {
	for _, c := range []struct {
		provider  v1alpha1.ModelProvider
		transport v1alpha1.ModelTransport
		options   string
		want      string
	}{
		{v1alpha1.ProviderOpenAICompatible, "", `{"usr":"x"}`,
			"spec.providerOptions.usr is not known here: the options are extra_body, reasoning_effort, user"},
		{v1alpha1.ProviderOpenAICompatible, "", `{"User":"x"}`,
			"spec.providerOptions.User is not known here: the options are extra_body, reasoning_effort, user"},
		{v1alpha1.ProviderOpenAI, "", `{"store":"my-value"}`, "spec.providerOptions.store must be true or false"},
		{v1alpha1.ProviderOpenAI, "", `{"top_log_probs":1.5}`, "spec.providerOptions.top_log_probs must be an integer"},
		{v1alpha1.ProviderOpenAI, "", `{"logit_bias":{"5":"x"}}`, "spec.providerOptions.logit_bias.5 must be an integer"},
		{v1alpha1.ProviderOpenAI, "", `{"metadata":{"team":5}}`, "spec.providerOptions.metadata.team must be a string"},
		{v1alpha1.ProviderOpenAI, "", `{"reasoning_effort":"enormous"}`,
			"spec.providerOptions.reasoning_effort must be one of none, minimal, low, medium, high, xhigh, max"},
		{v1alpha1.ProviderOpenAI, v1alpha1.TransportResponses, `{"previous_response_id":"r"}`,
			"spec.providerOptions.previous_response_id cannot be set: each call sends the whole conversation"},
		{v1alpha1.ProviderAzure, v1alpha1.TransportResponses, `{"include":"x"}`,
			"spec.providerOptions.include must be a list"},
		{v1alpha1.ProviderAzure, v1alpha1.TransportResponses, `{"include":["x",5]}`,
			"spec.providerOptions.include[1] must be a string"},
		{v1alpha1.ProviderAnthropic, "", `{"thinking":{"budget":1}}`,
			"spec.providerOptions.thinking.budget is not known here: the options are budget_tokens"},
		{v1alpha1.ProviderAnthropic, "", `{"thinking":{"budget_tokens":"lots"}}`,
			"spec.providerOptions.thinking.budget_tokens must be an integer"},
		{v1alpha1.ProviderAnthropic, "", `{"thinking":{"budget_tokens":0}}`,
			"spec.providerOptions.thinking.budget_tokens must be above 0"},
		{v1alpha1.ProviderAnthropic, "", `{"thinking":{"budget_tokens":-10}}`,
			"spec.providerOptions.thinking.budget_tokens must be above 0"},
		{v1alpha1.ProviderBedrock, "", `{"thinking":{}}`, "spec.providerOptions.thinking.budget_tokens must be set"},
		{v1alpha1.ProviderAnthropic, "", `{"thinking":5}`, "spec.providerOptions.thinking must be an object"},
		{v1alpha1.ProviderGoogle, "", `{"thinking_config":{"thinking_budget":1,"thinking_level":"LOW"}}`,
			"spec.providerOptions.thinking_config may have thinking_budget or thinking_level, not both"},
		{v1alpha1.ProviderGoogle, "", `{"safety_settings":[{"category":"a"},{"kategory":"b"}]}`,
			"spec.providerOptions.safety_settings[1].kategory is not known here: the options are category, threshold"},
		{v1alpha1.ProviderOpenRouter, "", `{"provider":{"sort":1}}`, "spec.providerOptions.provider.sort must be a string"},
		{v1alpha1.ProviderVercel, "", `{"byok":{}}`,
			"spec.providerOptions.byok cannot be set: a ChatModelConfig is no place for keys, since everybody may read it " +
				"who may read the object"},
		{v1alpha1.ProviderOpenAI, "", `{`, "spec.providerOptions cannot be read"},
	} {
		t.Run(string(c.provider)+c.options, func(t *testing.T) {
			if err := check(c.provider, c.transport, c.options); err == nil || err.Error() != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOptionsThatTheProviderTakesAreTaken(t *testing.T) {
	for provider, options := range map[v1alpha1.ModelProvider]string{
		v1alpha1.ProviderOpenAI:           `{"user":null,"store":true,"logit_bias":{"5":-100},"prediction":{"content":"x"}}`,
		v1alpha1.ProviderOpenAICompatible: `{"extra_body":{"anything":{"at":["all",1.5,null]}}}`,
		v1alpha1.ProviderAnthropic:        `{"thinking":{"budget_tokens":1024},"effort":"max"}`,
		v1alpha1.ProviderGoogle:           `{"thinking_config":{"thinking_budget":0},"safety_settings":[]}`,
		v1alpha1.ProviderVercel:           `{}`,
	} {
		if err := check(provider, "", options); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
	}
	if err := modelconfig.CheckOptions(&v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderOpenAI}); err != nil {
		t.Errorf("without options: %v", err)
	}
}

func TestALongNameIsNotQuotedWhole(t *testing.T) {
	err := check(v1alpha1.ProviderOpenAICompatible, "", `{"`+strings.Repeat("é", 5000)+`":1}`)
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}
