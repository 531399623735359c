// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/modelserver"
)

// wire is a provider as it is called: the real client, and a server that refuses what the real one refuses.
type wire struct {
	spec  v1alpha1.ChatModelConfigSpec
	model fantasy.LanguageModel
	// sent is the body of the last request.
	sent []byte
}

var wires = map[string]v1alpha1.ChatModelConfigSpec{
	"anthropic":         {Provider: v1alpha1.ProviderAnthropic, Model: "claude"},
	"openai-chat":       {Provider: v1alpha1.ProviderOpenAI, Model: "gpt"},
	"openai-responses":  {Provider: v1alpha1.ProviderOpenAI, Model: "gpt", Transport: v1alpha1.TransportResponses},
	"openai-compatible": {Provider: v1alpha1.ProviderOpenAICompatible, Model: "kimi"},
	"google":            {Provider: v1alpha1.ProviderGoogle, Model: "gemini-3-pro"},
	"openrouter":        {Provider: v1alpha1.ProviderOpenRouter, Model: "anthropic/claude"},
	"vercel":            {Provider: v1alpha1.ProviderVercel, Model: "anthropic/claude"},
}

func newWire(t *testing.T, spec v1alpha1.ChatModelConfigSpec) *wire {
	t.Helper()
	models, err := modelserver.New(
		modelserver.Script{
			Rules: []modelserver.Rule{
				{Reply: modelserver.Reply{Steps: []modelserver.Step{{Text: &modelserver.Text{Value: "ok"}}}}}}})
	check.OK(t, err)
	w := &wire{spec: spec}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var err error
		if w.sent, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if spec.Provider == v1alpha1.ProviderGoogle {
			gemini(out, w.sent)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(w.sent))
		r.URL.Path = r.URL.Path[strings.LastIndex(r.URL.Path, "/v1"):]
		models.ServeHTTP(out, r)
	}))
	t.Cleanup(server.Close)
	w.spec.BaseURL = server.URL + "/v1"
	if spec.Provider == v1alpha1.ProviderAnthropic || spec.Provider == v1alpha1.ProviderGoogle {
		w.spec.BaseURL = server.URL
	}
	if w.model, err = provider.New(&w.spec, "sk-test", providertest.Redirect(t, server.URL)); err != nil {
		t.Fatal(err)
	}
	return w
}

// send sends the prompt and returns what the server did not like.
func (w *wire) send(t *testing.T, in prompt.Input) error {
	t.Helper()
	in.Dialect = provider.DialectOf(&w.spec)
	stream, err := w.model.Stream(t.Context(), fantasy.Call{Prompt: prompt.Build(in), MaxOutputTokens: new(int64(100))})
	if err != nil {
		return err
	}
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			return part.Error
		}
	}
	return nil
}
