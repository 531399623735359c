// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"context"
	"encoding/base64"
	"slices"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/google"
)

// Provider returns the provider, which makes models whose signatures of thoughts can be kept. They are binary, and
// fantasy hands them over as a string: in JSON, which a ChatMessage is, that would not come back as it was, and Gemini
// refuses a signature that was changed and a call without one. Outside of this file they are base64, as they are on the
// wire.
func Provider(provider fantasy.Provider) fantasy.Provider { return signedProvider{provider} }

type signedProvider struct{ fantasy.Provider }

// LanguageModel implements fantasy.Provider.
func (p signedProvider) LanguageModel(ctx context.Context, id string) (fantasy.LanguageModel, error) {
	model, err := p.Provider.LanguageModel(ctx, id)
	if err != nil {
		return nil, err
	}
	return signedModel{model}, nil
}

type signedModel struct{ fantasy.LanguageModel }

// Stream implements fantasy.LanguageModel.
func (m signedModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	call.Prompt = withBinarySignatures(call.Prompt)
	stream, err := m.LanguageModel.Stream(ctx, call)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for part := range stream {
			if signed, ok := part.ProviderMetadata[google.Name].(*google.ReasoningMetadata); ok {
				encoded := base64.StdEncoding.EncodeToString([]byte(signed.Signature))
				part.ProviderMetadata = fantasy.ProviderMetadata{
					google.Name: &google.ReasoningMetadata{Signature: encoded, ToolID: signed.ToolID},
				}
			}
			if !yield(part) {
				return
			}
		}
	}, nil
}

// Generate implements fantasy.LanguageModel.
func (m signedModel) Generate(ctx context.Context, call fantasy.Call) (*fantasy.Response, error) {
	call.Prompt = withBinarySignatures(call.Prompt)
	return m.LanguageModel.Generate(ctx, call)
}

// withBinarySignatures is the prompt with the signatures as fantasy expects them. One that is no base64 is no
// signature.
func withBinarySignatures(prompt fantasy.Prompt) fantasy.Prompt {
	out := slices.Clone(prompt)
	for i := range out {
		out[i].Content = slices.Clone(out[i].Content)
		for j, part := range out[i].Content {
			reasoning, ok := part.(fantasy.ReasoningPart)
			if !ok {
				continue
			}
			signed, ok := reasoning.ProviderOptions[google.Name].(*google.ReasoningMetadata)
			if !ok {
				continue
			}
			binary, err := base64.StdEncoding.DecodeString(signed.Signature)
			if err != nil {
				binary = nil
			}
			reasoning.ProviderOptions = fantasy.ProviderOptions{
				google.Name: &google.ReasoningMetadata{Signature: string(binary), ToolID: signed.ToolID},
			}
			out[i].Content[j] = reasoning
		}
	}
	return out
}
