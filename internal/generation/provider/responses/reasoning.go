// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
)

type model struct {
	fantasy.LanguageModel

	spec *v1beta1.ChatModelConfigSpec
}

// Model returns the model of a configuration, which makes a call again without the reasoning of former replies if the
// provider refuses them: it cannot decrypt it, such as after a change of the organisation, or misses what it led to.
func Model(inner fantasy.LanguageModel, spec *v1beta1.ChatModelConfigSpec) fantasy.LanguageModel {
	return model{inner, spec}
}

func (m model) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	rest, found := withoutReasoning(call.Prompt)
	if !found || isSet(optionsOf(&call, m.spec.Provider).Store) {
		return m.LanguageModel.Stream(ctx, call)
	}
	return wire.Retry(ctx, m.LanguageModel, call, func(err error) *fantasy.Call {
		if rest == nil || !fault.HistoryRejected(err, fault.Subject{Spec: m.spec}) {
			return nil
		}
		again := call
		again.Prompt, rest = rest, nil
		return &again
	})
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
