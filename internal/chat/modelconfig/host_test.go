// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig_test

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/netguard/hostlist"
)

func TestModelConfigHostsMustBeListed(t *testing.T) {
	list := hostlist.List{"api.anthropic.com", "*.amazonaws.com", "ollama.models:11434"}
	for name, c := range map[string]struct {
		spec  v1beta1.ChatModelConfigSpec
		hosts hostlist.List
		want  string
	}{
		"a provider of the list": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAnthropic}, list, ""},
		"a provider that is not on it": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAI}, list,
			"api.openai.com"},
		"a provider of the list elsewhere": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAnthropic,
			BaseURL: "https://evil.example/v1"}, list, "evil.example"},
		"a server of the list": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAICompatible,
			BaseURL: "http://ollama.models:11434/v1"}, list, ""},
		"another port of it": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAICompatible,
			BaseURL: "http://ollama.models:22/v1"}, list, "ollama.models:22"},
		"a region": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderBedrock,
			Region: "eu-central-1"}, list, ""},
		"a location of Vertex AI": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderGoogle,
			VertexAI: &v1beta1.VertexAI{Project: "p", Location: "europe-west4"}}, list,
			"europe-west4-aiplatform.googleapis.com"},
		"the region of the environment": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderBedrock}, list, ""},
		"anything without a list": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAICompatible,
			BaseURL: "http://10.0.0.1/v1"}, nil, ""},
		"the pod itself": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAICompatible,
			BaseURL: "http://localhost:11434/v1"}, nil, "localhost:11434"},
		"the metadata service": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAICompatible,
			BaseURL: "http://169.254.169.254/v1"}, nil, "169.254.169.254"},
		"a proxy of the list": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAnthropic,
			Proxy: &v1beta1.ModelProxy{URL: "http://ollama.models:11434"}}, list, ""},
		"a proxy that is not on it": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAnthropic,
			Proxy: &v1beta1.ModelProxy{URL: "http://proxy.example.com:3128"}}, list, "proxy.example.com:3128"},
		"the metadata service as a proxy": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAnthropic,
			Proxy: &v1beta1.ModelProxy{URL: "http://169.254.169.254"}}, nil, "169.254.169.254"},
		"no proxy for some hosts": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAnthropic,
			Proxy: &v1beta1.ModelProxy{NoProxy: []string{"evil.example"}}}, list, ""},
		"the metadata service, by a list too": {v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAICompatible,
			BaseURL: "http://169.254.169.254/v1"}, hostlist.List{"169.254.169.254"}, "169.254.169.254"},
	} {
		if got := modelconfig.ForbiddenHost(&c.spec, c.hosts, false); got != c.want {
			t.Errorf("%s: %q is forbidden", name, got)
		}
	}
}
