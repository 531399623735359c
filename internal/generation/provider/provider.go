// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"net/http"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/chatcompletions"
	"parley.dev/parley/internal/generation/provider/fileurl"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/messages"
	"parley.dev/parley/internal/generation/provider/responses"
	"parley.dev/parley/internal/generation/provider/transport"
	"parley.dev/parley/internal/generation/provider/wire"
)

// New returns the model of a configuration. It calls nobody. Calls follow no redirects, and answers are bounded,
// whatever the client does. The model only streams.
func New(spec *v1alpha1.ChatModelConfigSpec, apiKey string, client *http.Client) (fantasy.LanguageModel, error) {
	spoken := finish.ProtocolOf(spec)
	protocol, err := protocolOf(spoken, spec, apiKey)
	if err != nil {
		return nil, fmt.Errorf("setting up provider %s: %w", spec.Provider, err)
	}
	client = transport.TakeNotes(transport.Guard(client, spec.Provider))
	model := fantasy.LanguageModel(wire.NewModel(protocol, client, spec))
	if spoken == finish.Responses {
		model = responses.Model(model, spec)
	}
	return finish.Model(outputModel{fileurl.Model(model, spec), spec}, spoken), nil
}

// protocolOf is the protocol, as the provider of the configuration speaks it.
func protocolOf(spoken finish.Protocol, spec *v1alpha1.ChatModelConfigSpec, apiKey string) (wire.Protocol, error) {
	switch spoken {
	case finish.Messages:
		return messages.New(spec, apiKey), nil
	case finish.Gemini:
		return gemini.New(spec, apiKey)
	case finish.Responses:
		return responses.New(spec, apiKey)
	}
	return chatcompletions.New(spec, apiKey)
}
