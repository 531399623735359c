// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatcompletions speaks OpenAI's Chat Completions protocol, with OpenAI, Azure, OpenRouter, Vercel and the
// servers that imitate OpenAI.
//
// Of OpenAI's library it imports the types of requests and events, and no client.
package chatcompletions

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/internal/generation/provider/wire"
)

// protocol implements wire.Protocol for one configuration.
type protocol struct {
	spec   *v1alpha1.ChatModelConfigSpec
	url    string
	header map[string]string
	// fitSchema is a schema as the provider takes it; nil: it takes every schema.
	fitSchema func(map[string]any) (map[string]any, []string)
}

// New returns the protocol for the provider of a configuration.
func New(spec *v1alpha1.ChatModelConfigSpec, key string) (wire.Protocol, error) {
	base, known := baseURLs[spec.Provider]
	if !known {
		return nil, fmt.Errorf("provider %q is not known", spec.Provider)
	}
	at, header, err := wire.OpenAI(spec, key, base, "chat", "completions")
	if err != nil {
		return nil, err
	}
	p := &protocol{spec: spec, url: at, header: header}
	if p.ofOpenAI() {
		p.fitSchema = schema.ForOpenAI
	}
	return p, nil
}

// ofOpenAI reports whether the provider serves OpenAI's own models.
func (p *protocol) ofOpenAI() bool {
	return p.spec.Provider == v1alpha1.ProviderOpenAI || p.spec.Provider == v1alpha1.ProviderAzure
}

// baseURLs are where each provider is without a baseURL.
var baseURLs = map[v1alpha1.ModelProvider]string{
	v1alpha1.ProviderOpenAI: "https://api.openai.com/v1", v1alpha1.ProviderAzure: "",
	v1alpha1.ProviderOpenAICompatible: "", v1alpha1.ProviderOpenRouter: "https://openrouter.ai/api/v1",
	v1alpha1.ProviderVercel: "https://ai-gateway.vercel.sh/v1",
}
