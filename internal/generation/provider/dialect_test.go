// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"testing"

	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestModelsOfMistralGetTheirIDs(t *testing.T) {
	for model, want := range map[string]int{"mistral-large-latest": 9, "mistralai/Mistral-7B-Instruct-v0.3": 9,
		"ministral-8b-latest": 9, "open-mixtral-8x22b": 9, "devstral:24b": 9, "codestral-latest": 9,
		"magistral-medium-latest": 9, "pixtral-12b": 9, "qwen3": 0, "deepseek-chat": 0} {
		spec := providertest.Specs["openai-compatible"]
		spec.Model = model
		dialect := provider.DialectOf(&spec)
		check.Equal(t, model, want, dialect.HashedIDs)
		check.Equal(t, model+" keeps an id of nine", true, dialect.KeepsID("abcDEF123", true))
		check.Equal(t, model+" keeps another id", want == 0, dialect.KeepsID("call_12345", true))
	}
}
