// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
)

type model struct {
	fantasy.LanguageModel

	spec      *v1beta1.ChatModelConfigSpec
	reasoning wire.Reasoning
}

// Model returns the model of a configuration, which makes a call again without the reasoning of former replies if the
// provider refuses them: it cannot decrypt it, such as after a change of the organisation, or misses what it led to.
func Model(inner fantasy.LanguageModel, spec *v1beta1.ChatModelConfigSpec) fantasy.LanguageModel {
	return model{inner, spec, wire.NewReasoning()}
}

func (m model) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	if isSet(optionsOf(&call, m.spec.Provider).Store) {
		return m.LanguageModel.Stream(ctx, call)
	}
	return m.reasoning.Stream(ctx, m.LanguageModel, call, func(err error) bool {
		return fault.HistoryRejected(err, fault.Subject{Spec: m.spec})
	})
}
