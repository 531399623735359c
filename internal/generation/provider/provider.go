// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider turns a ChatModelConfig into a model that can be called. What it returns behaves the same for every
// provider, as far as their protocols allow.
package provider

import (
	"context"
	"fmt"
	"net/http"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/bedrock"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/chatcompletions"
	"parley.dev/parley/internal/generation/provider/claude"
	"parley.dev/parley/internal/generation/provider/fileurl"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/intercept"
	"parley.dev/parley/internal/generation/provider/responses"
	"parley.dev/parley/internal/generation/provider/transport"
	"parley.dev/parley/internal/generation/provider/wire"
)

const userAgent = "parley/v1alpha1"

// New returns the model of a configuration. It calls nobody. Calls follow no redirects, and answers are bounded,
// whatever the client does.
func New(ctx context.Context, spec *v1alpha1.ChatModelConfigSpec, apiKey string,
	client *http.Client) (fantasy.LanguageModel, error) {
	protocol, err := protocolOf(ctx, spec, apiKey)
	if err != nil {
		return nil, fmt.Errorf("setting up provider %s: %w", spec.Provider, err)
	}
	if protocol != nil {
		guarded := transport.TakeNotes(transport.Guard(client, spec.Provider))
		model := fantasy.LanguageModel(streamedModel{wire.NewModel(protocol, guarded, spec)})
		if finish.ProtocolOf(spec) == finish.Responses {
			model = responses.Model(model, spec)
		}
		model = outputModel{fileurl.Model(model, spec, true), spec}
		return finish.Model(model, finish.ProtocolOf(spec)), nil
	}
	headers := map[string]string{}
	for _, h := range spec.Headers {
		headers[h.Name] = h.Value
	}
	build := newAnthropic
	if spec.Provider == v1alpha1.ProviderBedrock {
		build = newBedrock
	}
	p, err := build(settings{spec: spec, key: apiKey, headers: headers,
		client: intercept.Client(transport.TakeNotes(fileurl.Client(transport.Guard(client, spec.Provider), spec)))})
	if err != nil {
		return nil, fmt.Errorf("setting up provider %s: %w", spec.Provider, err)
	}
	model, err := p.LanguageModel(ctx, spec.Model)
	if err != nil {
		return nil, fmt.Errorf("setting up model %s of provider %s: %w", spec.Model, spec.Provider, err)
	}
	model = claude.Repair(withSchemas(streamedModel{model}, spec.Provider))
	return finish.Model(fileurl.Model(model, spec, false), finish.ProtocolOf(spec)), nil
}

// protocolOf is the protocol that the provider of a configuration speaks; nil: it is not ported yet.
func protocolOf(_ context.Context, spec *v1alpha1.ChatModelConfigSpec, apiKey string) (wire.Protocol, error) {
	switch finish.ProtocolOf(spec) {
	case finish.Messages:
		return nil, nil
	case finish.Gemini:
		return gemini.New(spec, apiKey)
	case finish.Responses:
		return responses.New(spec, apiKey)
	}
	return chatcompletions.New(spec, apiKey)
}

type settings struct {
	spec    *v1alpha1.ChatModelConfigSpec
	key     string
	headers map[string]string
	client  *http.Client
}

func newAnthropic(s settings) (fantasy.Provider, error) {
	options := []anthropic.Option{
		anthropic.WithAPIKey(s.key), anthropic.WithHeaders(s.headers), anthropic.WithHTTPClient(s.client),
		anthropic.WithUserAgent(userAgent),
	}
	if s.spec.BaseURL != "" {
		options = append(options, anthropic.WithBaseURL(s.spec.BaseURL))
	}
	return anthropic.New(options...)
}

func newBedrock(s settings) (fantasy.Provider, error) {
	options := []bedrock.Option{bedrock.WithHeaders(s.headers), bedrock.WithHTTPClient(s.client),
		bedrock.WithUserAgent(userAgent)}
	if s.key != "" {
		options = append(options, bedrock.WithAPIKey(s.key))
	}
	if s.spec.Region != "" {
		options = append(options, bedrock.WithRegion(s.spec.Region))
	}
	return bedrock.New(options...)
}
