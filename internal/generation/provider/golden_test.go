// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

var update = flag.Bool("update", false, "write the requests to testdata/requests instead of comparing them")

// everything is a configuration in which everything is set that every provider takes.
func everything(p v1beta1.ModelProvider, model string) v1beta1.ChatModelConfigSpec {
	return v1beta1.ChatModelConfigSpec{
		Provider: p, Model: model,
		APIKey:          &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "keys", Key: "token"}},
		Headers:         []v1beta1.Header{{Name: "X-Team", Value: "blue"}},
		MaxOutputTokens: new(int64(10_000)), Temperature: new(0.5), TopP: new(0.25), TopK: new(int64(40)),
		PresencePenalty: new(0.125), FrequencyPenalty: new(-0.5),
	}
}

// requests are the configurations whose requests are kept in testdata/requests.
var requests = []struct {
	name   string
	spec   v1beta1.ChatModelConfigSpec
	change func(*v1beta1.ChatModelConfigSpec)
	asked  v1beta1.ReasoningEffort
}{
	{name: "openai-chat", spec: everything(v1beta1.ProviderOpenAI, "gpt-4o"),
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "https://proxy.example.com/openai"
			s.ProviderOptions = options(
				`{"openai":{"user":"u-1","parallelToolCalls":false,"serviceTier":"auto","logitBias":[{"token":50256,"bias":-100}],"metadata":[{"name":"team","value":"blue"}]}}`)
		}},
	{name: "openai-chat-reasoning", spec: everything(v1beta1.ProviderOpenAI, "o3"), asked: v1beta1.EffortHigh},
	{name: "openai-responses", spec: everything(v1beta1.ProviderOpenAI, "gpt-4o"),
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.Transport = v1beta1.TransportResponses
			s.ProviderOptions = options(
				`{"openaiResponses":{"maxToolCalls":3,"store":true,"promptCacheKey":"p"}}`)
		}},
	{name: "openai-responses-reasoning", spec: everything(v1beta1.ProviderOpenAI, "gpt-5"), asked: v1beta1.EffortNone,
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.Transport = v1beta1.TransportResponses
			s.ProviderOptions = options(`{"openaiResponses":{"reasoningSummary":"auto","reasoningEffort":"high"}}`)
		}},
	{name: "anthropic", spec: everything(v1beta1.ProviderAnthropic, "claude-sonnet-4-5"),
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "https://proxy.example.com/anthropic"
			s.ProviderOptions = options(`{"anthropic":{"extraBody":{"service_tier":"standard_only"}}}`)
		}},
	{name: "anthropic-budget", spec: everything(v1beta1.ProviderAnthropic, "claude-sonnet-4-5-20250929"),
		asked: v1beta1.EffortMedium},
	{name: "anthropic-effort", spec: everything(v1beta1.ProviderAnthropic, "claude-opus-4-8"),
		asked: v1beta1.EffortXHigh},
	{name: "anthropic-display", spec: everything(v1beta1.ProviderAnthropic, "claude-sonnet-5"),
		asked: v1beta1.EffortLow},
	{name: "google", spec: everything(v1beta1.ProviderGoogle, "gemini-2.0-flash"),
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "https://proxy.example.com/google?team=blue"
			s.ProviderOptions = options(
				`{"google":{"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"cachedContent":"cachedContents/c"}}`)
		}},
	{name: "google-budget", spec: everything(v1beta1.ProviderGoogle, "gemini-2.5-flash"), asked: v1beta1.EffortMedium},
	{name: "google-level", spec: everything(v1beta1.ProviderGoogle, "gemini-3-flash"), asked: v1beta1.EffortMax},
	{name: "openai-compatible", spec: everything(v1beta1.ProviderOpenAICompatible, "qwen3"),
		asked: v1beta1.EffortMinimal, change: func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "http://ollama.models:11434/v1"
			s.ProviderOptions = options(`{"openaiCompatible":{"extraBody":{"chat_template_kwargs":{"enable_thinking":true}}}}`)
		}},
	{name: "azure-chat", spec: everything(v1beta1.ProviderAzure, "my-deployment"), asked: v1beta1.EffortLow,
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL, s.APIVersion = "https://my-resource.openai.azure.com", "2026-01-01"
		}},
	{name: "azure-chat-completion-tokens", spec: everything(v1beta1.ProviderAzure, "my-deployment"),
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL, s.ProviderOptions = "https://proxy.example.com/azure", options(`{"azure":{"maxCompletionTokens":5000}}`)
		}},
	{name: "azure-responses", spec: everything(v1beta1.ProviderAzure, "gpt-5-of-mine"), asked: v1beta1.EffortLow,
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL, s.Transport = "https://my-resource.openai.azure.com", v1beta1.TransportResponses
		}},
	{name: "openrouter", spec: everything(v1beta1.ProviderOpenRouter, "anthropic/claude-sonnet-4.5"),
		asked: v1beta1.EffortMax, change: func(s *v1beta1.ChatModelConfigSpec) {
			s.ProviderOptions = options(
				`{"openrouter":{"provider":{"order":["anthropic"],"allowFallbacks":false},"reasoning":{"maxTokens":5,"exclude":true}}}`)
		}},
	{name: "vercel", spec: everything(v1beta1.ProviderVercel, "openai/gpt-4o"), asked: v1beta1.EffortHigh,
		change: func(s *v1beta1.ChatModelConfigSpec) {
			s.ProviderOptions = options(`{"vercel":{"gateway":{"order":["azure"],"zeroDataRetention":true}}}`)
		}},
	{name: "bedrock", spec: everything(v1beta1.ProviderBedrock, "anthropic.claude-sonnet-4-5-20250929-v1:0"),
		asked: v1beta1.EffortHigh, change: func(s *v1beta1.ChatModelConfigSpec) {
			s.Region = "eu-central-1"
		}},
}

func TestEverythingOfAConfigurationReachesTheWire(t *testing.T) {
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			spec := c.spec.DeepCopy()
			if c.change != nil {
				c.change(spec)
			}
			got := recordRequest(t, spec, c.asked)
			path := filepath.Join("testdata", "requests", c.name+".txt")
			if *update {
				check.OK(t, os.WriteFile(path, []byte(got), 0o600))
			}
			want, err := os.ReadFile(path)
			check.OK(t, err)
			if got != string(want) {
				t.Errorf("the request has changed; if it should have, run the test with -update and read the difference. Got:\n%s",
					got)
			}
		})
	}
}

// recordRequest calls the model of the configuration and returns the request that it made, and the warnings.
func recordRequest(t *testing.T, spec *v1beta1.ChatModelConfigSpec, asked v1beta1.ReasoningEffort) string {
	t.Helper()
	var record recorder
	model, err := provider.New(spec, providertest.Key, &http.Client{Transport: &record})
	check.OK(t, err)
	call := provider.Call(spec, asked)
	var warnings []fantasy.CallWarning
	call.Prompt = fantasy.Prompt{fantasy.NewSystemMessage("Be brief."), fantasy.NewUserMessage("Hello?")}
	call.Tools = []fantasy.Tool{fantasy.FunctionTool{Name: "f", Description: "Does f.",
		InputSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}
	stream, err := model.Stream(t.Context(), call)
	check.OK(t, err)
	for part := range stream {
		warnings = append(warnings, part.Warnings...)
	}
	for _, w := range warnings {
		fmt.Fprintf(&record.text, "\nwarning: %s %s", w.Setting, w.Details)
	}
	if record.n != 1 {
		t.Fatalf("%d requests were made", record.n)
	}
	return strings.TrimSpace(record.text.String()) + "\n"
}

// recorder writes requests down and answers none.
type recorder struct {
	text bytes.Buffer
	n    int
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.n++
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&r.text, "%s %s\n", request.Method, request.URL)
	for _, name := range slices.Sorted(maps.Keys(request.Header)) {
		fmt.Fprintf(&r.text, "%s: %s\n", name, strings.Join(request.Header[name], ", "))
	}
	var sent any
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	pretty, err := json.MarshalIndent(sent, "", "  ") // The keys are sorted.
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&r.text, "\n%s\n", pretty)
	return &http.Response{
		StatusCode: http.StatusTeapot, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader("{}")), Request: request,
	}, nil
}

func TestUnknownProviderIsRefused(t *testing.T) {
	if _, err := provider.New(providertest.Protocol{Provider: "unheard-of"}.Spec(""), providertest.Key,
		http.DefaultClient); err == nil {
		t.Error("a provider that nobody knows was set up")
	}
}
