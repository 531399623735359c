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
	"parley.dev/parley/internal/testing/providertest"
)

func TestEveryProviderCanBeSetUp(t *testing.T) {
	for _, p := range []protocol{
		chat, responses, compatible, claude, gemini, {Provider: v1alpha1.ProviderOpenRouter},
		{Provider: v1alpha1.ProviderVercel},
		{Provider: v1alpha1.ProviderAzure}, {Provider: v1alpha1.ProviderAzure, Transport: v1alpha1.TransportResponses},
		{Provider: v1alpha1.ProviderBedrock},
	} {
		t.Run(fmt.Sprint(p.Provider, p.Transport), func(t *testing.T) {
			spec := p.Spec("https://models.example.com/v1")
			spec.Region = "eu-central-1"
			model, err := provider.New(t.Context(), spec, key, http.DefaultClient)
			if err != nil || !strings.Contains(model.Model(), "some-model") {
				t.Errorf("got %v, %v", model, err)
			}
		})
	}
	if _, err := provider.New(t.Context(), protocol{Provider: "unheard-of"}.Spec(""), key,
		http.DefaultClient); err == nil {
		t.Error("a provider that nobody knows was set up")
	}
}

func TestSettingsReachTheWire(t *testing.T) {
	for p, want := range map[protocol]struct{ path, header, value, maxTokens string }{
		chat:       {"/base/chat/completions", "Authorization", "Bearer " + key, `"max_tokens":777`},
		compatible: {"/base/chat/completions", "Authorization", "Bearer " + key, `"max_tokens":777`},
		responses:  {"/base/responses", "Authorization", "Bearer " + key, `"max_output_tokens":777`},
		claude:     {"/base/v1/messages", "X-Api-Key", key, `"max_tokens":777`},
		gemini:     {"/base/v1beta/models/some-model:streamGenerateContent", "X-Goog-Api-Key", key, `"maxOutputTokens":777`},
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
			for _, has := range []string{want.maxTokens, secret} {
				if !strings.Contains(strings.ReplaceAll(string(body), `": `, `":`), has) {
					t.Errorf("no %s in %s", has, body)
				}
			}
		})
	}
}
