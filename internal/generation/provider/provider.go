// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider turns a ChatModelConfig into a model that can be called. What it returns behaves the same for every
// provider, as far as their protocols allow; it and the packages of single protocols below it alone import fantasy's
// providers.
package provider

import (
	"context"
	"fmt"
	"net/http"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	"charm.land/fantasy/providers/openrouter"
	"charm.land/fantasy/providers/vercel"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/chatcompletions"
	"parley.dev/parley/internal/generation/provider/fileurl"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/intercept"
	"parley.dev/parley/internal/generation/provider/messages"
	"parley.dev/parley/internal/generation/provider/responses"
	"parley.dev/parley/internal/generation/provider/transport"
	"parley.dev/parley/internal/generation/provider/wire"
)

// userAgent names Parley to providers.
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
	build, ok := builders[spec.Provider]
	if !ok {
		return nil, fmt.Errorf("provider %q is not known", spec.Provider)
	}
	headers := map[string]string{}
	for _, h := range spec.Headers {
		headers[h.Name] = h.Value
	}
	p, err := build(settings{spec: spec, key: apiKey, headers: headers, client: clientOf(spec, client)})
	if err != nil {
		return nil, fmt.Errorf("setting up provider %s: %w", spec.Provider, err)
	}
	model, err := p.LanguageModel(ctx, spec.Model)
	if err != nil {
		return nil, fmt.Errorf("setting up model %s of provider %s: %w", spec.Model, spec.Provider, err)
	}
	model = withSchemas(streamedModel{model}, spec.Provider)
	model = chatcompletions.Repair(model, spec)
	return finish.Model(fileurl.Model(model, spec, false), finish.ProtocolOf(spec)), nil
}

// protocolOf is the protocol that the provider of a configuration speaks; nil: it is not ported yet.
func protocolOf(_ context.Context, spec *v1alpha1.ChatModelConfigSpec, apiKey string) (wire.Protocol, error) {
	switch finish.ProtocolOf(spec) {
	case finish.Messages:
		return messages.New(spec, apiKey), nil
	case finish.Gemini:
		return gemini.New(spec, apiKey)
	case finish.Responses:
		return responses.New(spec, apiKey)
	}
	return nil, nil
}

// clientOf is the client for the calls of a configuration. The transport that was added last is the first that a
// request passes, and the last that reads its answer.
func clientOf(spec *v1alpha1.ChatModelConfigSpec, client *http.Client) *http.Client {
	client = chatcompletions.Client(fileurl.Client(transport.Guard(client, spec.Provider), spec))
	return intercept.Client(transport.TakeNotes(client))
}

type settings struct {
	spec    *v1alpha1.ChatModelConfigSpec
	key     string
	headers map[string]string
	client  *http.Client
}

var builders = map[v1alpha1.ModelProvider]func(settings) (fantasy.Provider, error){
	v1alpha1.ProviderOpenAI:           newOpenAI,
	v1alpha1.ProviderOpenAICompatible: newOpenAICompatible,
	v1alpha1.ProviderOpenRouter: func(s settings) (fantasy.Provider, error) {
		return openrouter.New(openrouter.WithAPIKey(s.key), openrouter.WithHeaders(s.headers),
			openrouter.WithHTTPClient(s.client), openrouter.WithUserAgent(userAgent))
	},
	v1alpha1.ProviderAzure:  newAzure,
	v1alpha1.ProviderVercel: newVercel,
}

func newOpenAI(s settings) (fantasy.Provider, error) {
	options := []openai.Option{
		openai.WithAPIKey(s.key), openai.WithHeaders(s.headers), openai.WithHTTPClient(s.client),
		openai.WithUserAgent(userAgent),
	}
	if s.spec.BaseURL != "" {
		options = append(options, openai.WithBaseURL(s.spec.BaseURL))
	}
	return openai.New(options...)
}

func newOpenAICompatible(s settings) (fantasy.Provider, error) {
	return openaicompat.New(openaicompat.WithBaseURL(s.spec.BaseURL), openaicompat.WithAPIKey(s.key),
		openaicompat.WithHeaders(s.headers), openaicompat.WithHTTPClient(s.client), openaicompat.WithUserAgent(userAgent),
		chatcompletions.CountOutput())
}

func newVercel(s settings) (fantasy.Provider, error) {
	options := []vercel.Option{
		vercel.WithAPIKey(s.key), vercel.WithHeaders(s.headers), vercel.WithHTTPClient(s.client),
		vercel.WithUserAgent(userAgent),
	}
	if s.spec.BaseURL != "" {
		options = append(options, vercel.WithBaseURL(s.spec.BaseURL))
	}
	return vercel.New(options...)
}
