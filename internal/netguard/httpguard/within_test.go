// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
)

// everyProvider is a configuration of each, with a baseURL where it takes one.
func everyProvider(base string) []v1beta1.ChatModelConfigSpec {
	return []v1beta1.ChatModelConfigSpec{
		{Provider: v1beta1.ProviderOpenAI, Model: "gpt-4.1", BaseURL: base},
		{Provider: v1beta1.ProviderOpenAI, Model: "gpt-4.1", BaseURL: base, Transport: v1beta1.TransportResponses},
		{Provider: v1beta1.ProviderAnthropic, Model: "claude-sonnet-4-5", BaseURL: base},
		{Provider: v1beta1.ProviderGoogle, Model: "gemini-2.5-flash", BaseURL: base},
		{Provider: v1beta1.ProviderOpenAICompatible, Model: "m", BaseURL: base},
		{Provider: v1beta1.ProviderOpenRouter, Model: "a/b"},
		{Provider: v1beta1.ProviderAzure, Model: "gpt-4.1", BaseURL: base},
		{Provider: v1beta1.ProviderBedrock, Model: "anthropic.claude-sonnet-4-5", Region: "eu-central-1"},
		{Provider: v1beta1.ProviderVercel, Model: "a/b", BaseURL: base},
	}
}

// refused calls the model and expects that the host is not called, for good and with a reason.
func refused(t *testing.T, spec *v1beta1.ChatModelConfigSpec, client *http.Client, host string) {
	t.Helper()
	model, err := provider.New(spec, "sk-1", client)
	check.OK(t, err)
	call := fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("secret words")}}
	if err = streamError(t.Context(), model, call); err == nil {
		t.Errorf("%s: no error", spec.Provider)
		return
	}
	e := fault.Classify(err, fault.Subject{Config: "c", Spec: spec, Key: "sk-1"})
	if e.Reason != v1beta1.ErrorModelConfigInvalid || e.Retryable ||
		!strings.Contains(e.Message, host+", where models may not be called") {
		t.Errorf("%s: %+v of %v", spec.Provider, e, err)
	}
}

func streamError(ctx context.Context, model fantasy.LanguageModel, call fantasy.Call) error {
	stream, err := model.Stream(ctx, call)
	if err != nil {
		return err
	}
	for part := range stream {
		if part.Error != nil {
			return part.Error
		}
	}
	return nil
}

func TestModelIsCalledOnlyAtAllowedHosts(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		asked++
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, spec := range everyProvider(server.URL) {
		want := host
		switch spec.Provider {
		case v1beta1.ProviderOpenRouter:
			want = "openrouter.ai"
		case v1beta1.ProviderBedrock:
			want = "bedrock-runtime.eu-central-1.amazonaws.com"
		default:
		}
		refused(t, &spec, httpguard.Within(&http.Client{}, hostlist.List{"models.example.com"}), want)
	}
	check.Equal(t, "a host that is not on the list was asked times", 0, asked)
	spec := everyProvider(server.URL)[4]
	model, err := provider.New(&spec, "sk-1", httpguard.Within(&http.Client{}, hostlist.List{host}))
	check.OK(t, err)
	if err := streamError(t.Context(), model,
		fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("hello")}}); err == nil || asked == 0 {
		t.Errorf("a host of the list was asked %d times: %v", asked, err)
	}
}

func TestMetadataAndLoopbackAddressesAreBlocked(t *testing.T) {
	client := httpguard.Settings{}.Client()
	for base, host := range map[string]string{"http://169.254.169.254": "169.254.169.254", "http://[fe80::1]:80": "fe80::1",
		"http://[::ffff:169.254.169.254]:80": "169.254.169.254", "http://127.0.0.1:1": "127.0.0.1",
		"http://localhost:1": "1"} {
		spec := everyProvider(base)[4]
		model, err := provider.New(&spec, "sk-1", client)
		check.OK(t, err)
		err = streamError(t.Context(), model, fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("hello")}})
		e := fault.Classify(err, fault.Subject{Config: "c", Spec: &spec})
		if e.Reason != v1beta1.ErrorModelConfigInvalid || e.Retryable || !strings.Contains(e.Message, host) {
			t.Errorf("%s: %+v of %v", base, e, err)
		}
	}
}
