// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/providertest"
)

func TestEveryProviderCanBeSetUp(t *testing.T) {
	for _, p := range []providertest.Protocol{
		providertest.Chat, providertest.Responses, providertest.Compatible, providertest.Claude, providertest.Gemini,
		{Provider: v1alpha1.ProviderOpenRouter},
		{Provider: v1alpha1.ProviderVercel},
		{Provider: v1alpha1.ProviderAzure}, {Provider: v1alpha1.ProviderAzure, Transport: v1alpha1.TransportResponses},
		{Provider: v1alpha1.ProviderBedrock},
	} {
		t.Run(fmt.Sprint(p.Provider, p.Transport), func(t *testing.T) {
			spec := p.Spec("https://models.example.com/v1")
			spec.Region = "eu-central-1"
			model, err := provider.New(spec, providertest.Key, http.DefaultClient)
			if err != nil || !strings.Contains(model.Model(), "some-model") {
				t.Errorf("got %v, %v", model, err)
			}
		})
	}
	if _, err := provider.New(providertest.Protocol{Provider: "unheard-of"}.Spec(""), providertest.Key,
		http.DefaultClient); err == nil {
		t.Error("a provider that nobody knows was set up")
	}
}

func TestSettingsReachTheWire(t *testing.T) {
	for p, want := range map[providertest.Protocol]struct{ path, header, value, maxTokens string }{
		providertest.Chat: {"/base/chat/completions", "Authorization", "Bearer " + providertest.Key,
			`"max_tokens":777`},
		providertest.Compatible: {"/base/chat/completions", "Authorization", "Bearer " + providertest.Key,
			`"max_tokens":777`},
		providertest.Responses: {"/base/responses", "Authorization", "Bearer " + providertest.Key, `"max_output_tokens":777`},
		providertest.Claude:    {"/base/v1/messages", "X-Api-Key", providertest.Key, `"max_tokens":777`},
		providertest.Gemini: {"/base/v1beta/models/some-model:streamGenerateContent", "X-Goog-Api-Key", providertest.Key,
			`"maxOutputTokens":777`},
	} {
		t.Run(fmt.Sprint(p.Provider, p.Transport), func(t *testing.T) {
			var got *http.Request
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body) // A short body fails the test below.
				w.WriteHeader(http.StatusTeapot)
			}))
			defer server.Close()
			if err := providertest.Call(t, p.Spec(server.URL+"/base"), http.DefaultClient); err == nil {
				t.Fatal("the call succeeded")
			}
			if got.URL.Path != want.path || got.Header.Get(want.header) != want.value || got.Header.Get("X-Team") != "blue" ||
				!strings.HasPrefix(got.UserAgent(), "parley/") {
				t.Errorf("got %s with %v", got.URL.Path, got.Header)
			}
			for _, has := range []string{want.maxTokens, providertest.Secret} {
				if !strings.Contains(strings.ReplaceAll(string(body), `": `, `":`), has) {
					t.Errorf("no %s in %s", has, body)
				}
			}
		})
	}
}
