// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
)

func TestVertexAIServesAModelAtItsLocation(t *testing.T) {
	for _, c := range []struct{ model, location, want string }{
		{"gemini-2.5-flash", "europe-west4", "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/" +
			"locations/europe-west4/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"models/gemini-3-pro-preview", "global", "https://aiplatform.googleapis.com/v1beta1/projects/p/" +
			"locations/global/publishers/google/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"},
		{"endpoints/123", "eu", "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/p/" +
			"locations/eu/endpoints/123:streamGenerateContent?alt=sse"},
	} {
		protocol, err := gemini.New(&v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderGoogle, Model: c.model,
			VertexAI: &v1alpha1.VertexAI{Project: "p", Location: c.location}}, "")
		if err != nil {
			t.Fatal(err)
		}
		request, _, err := protocol.Request(t.Context(), &fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("?")}})
		check.Equal(t, "error, url, header", []any{nil, c.want, 0}, []any{err, request.URL, len(request.Header)})
	}
}

func TestVertexAITakesNoSearchBesideOtherTools(t *testing.T) {
	for vertex, want := range map[*v1alpha1.VertexAI]bool{nil: true, {Project: "p", Location: "global"}: false} {
		protocol, err := gemini.New(&v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderGoogle,
			Model: "gemini-3-pro-preview", VertexAI: vertex}, "")
		if err != nil {
			t.Fatal(err)
		}
		request, warnings, err := protocol.Request(t.Context(), &fantasy.Call{
			Prompt: fantasy.Prompt{fantasy.NewUserMessage("?")},
			Tools: []fantasy.Tool{fantasy.ProviderDefinedTool{ID: "google." + wire.WebSearch, Name: wire.WebSearch},
				fantasy.FunctionTool{Name: "f", InputSchema: map[string]any{"type": "object"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		body := string(request.Body)
		if strings.Contains(body, "googleSearch") != want || (len(warnings) == 0) != want ||
			strings.Contains(body, "includeServerSideToolInvocations") != want || !strings.Contains(body, `"name":"f"`) {
			t.Errorf("with %v: %v, %s", vertex, warnings, body)
		}
	}
}
