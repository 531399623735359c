// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
)

type model struct {
	fantasy.LanguageModel

	spec *v1alpha1.ChatModelConfigSpec
}

// Model returns the model of a configuration, which makes a call again without the reasoning of former replies if the
// provider refuses them: it cannot decrypt it, such as after a change of the organisation, or misses what it led to.
func Model(inner fantasy.LanguageModel, spec *v1alpha1.ChatModelConfigSpec) fantasy.LanguageModel {
	return model{inner, spec}
}

// Stream implements fantasy.LanguageModel.
func (m model) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	stream, err := m.LanguageModel.Stream(ctx, call)
	rest, found := withoutReasoning(call.Prompt)
	if err != nil || !found || isSet(optionsOf(&call, m.spec.Provider).Store) {
		return stream, err
	}
	call.Prompt = rest
	return func(yield func(fantasy.StreamPart) bool) {
		if m.forward(stream, yield) { // The connection of the first call is given back.
			m.again(ctx, call, yield)
		}
	}, nil
}

// forward hands the stream on, unless it is nothing but a refusal of the history.
func (m model) forward(stream fantasy.StreamResponse, yield func(fantasy.StreamPart) bool) (refused bool) {
	begun := false
	for part := range stream {
		if !begun && part.Error != nil && fault.HistoryRejected(part.Error, fault.Subject{Spec: m.spec}) {
			return true
		}
		begun = begun || part.Type != fantasy.StreamPartTypeWarnings
		if !yield(part) {
			return false
		}
	}
	return false
}

// again makes the call, and hands its stream on.
func (m model) again(ctx context.Context, call fantasy.Call, yield func(fantasy.StreamPart) bool) {
	if stream, err := m.LanguageModel.Stream(ctx, call); err != nil {
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: err})
	} else {
		stream(yield)
	}
}

// withoutReasoning is a prompt without the reasoning that would go back; false: it has none.
func withoutReasoning(prompt fantasy.Prompt) (rest fantasy.Prompt, found bool) {
	sealed := func(part fantasy.MessagePart) bool {
		return part.GetType() == fantasy.ContentTypeReasoning && wire.StateOf(part).Item != nil
	}
	rest = slices.Clone(prompt)
	for i := range rest {
		if slices.ContainsFunc(rest[i].Content, sealed) {
			rest[i].Content, found = slices.DeleteFunc(slices.Clone(rest[i].Content), sealed), true
		}
	}
	return rest, found
}
