// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"net/http"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/util/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/chatcompletions"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/fileurl"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/identity"
	"parley.dev/parley/internal/generation/provider/messages"
	"parley.dev/parley/internal/generation/provider/responses"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/netguard/httpguard"
)

// New returns the model of a configuration. It makes no request. Calls follow no redirects, and answers are bounded,
// whatever the client does. The model only streams.
func New(spec *v1beta1.ChatModelConfigSpec, apiKey string, client *http.Client) (fantasy.LanguageModel, error) {
	protocol, err := protocolOf(spec, apiKey)
	if err != nil {
		return nil, err
	}
	return modelOf(protocol, spec, client), nil
}

// NewAs is New for a configuration whose calls log in by the workload identity of the pod, as its auth says.
func NewAs(pod *identity.Identity, spec *v1beta1.ChatModelConfigSpec, client *http.Client) (fantasy.LanguageModel,
	error) {
	protocol, err := protocolOf(spec, "")
	if err != nil {
		return nil, err
	}
	return modelOf(signed{protocol, pod}, spec, client), nil
}

// signed is a protocol whose requests are signed by the identity of the pod, unless they are by the protocol itself.
type signed struct {
	wire.Protocol
	pod *identity.Identity
}

func (s signed) Request(ctx context.Context, call *fantasy.Call) (*wire.Request, []fantasy.CallWarning, error) {
	request, warnings, err := s.Protocol.Request(ctx, call)
	if err == nil && request.Sign == nil {
		request.Sign = s.pod.Sign
	}
	return request, warnings, err
}

// modelOf is the model that is called by the protocol.
func modelOf(protocol wire.Protocol, spec *v1beta1.ChatModelConfigSpec, client *http.Client) fantasy.LanguageModel {
	spoken := finish.ProtocolOf(spec)
	limits := httpguard.ModelLimits
	limits.Binary = spec.Provider == v1beta1.ProviderBedrock
	client = httpguard.Guard(client, limits)
	model := fantasy.LanguageModel(&roomModel{LanguageModel: wire.NewModel(protocol, client, spec), spec: spec})
	if spoken == finish.Responses || spoken == finish.Messages {
		model = wire.RetryWithoutReasoning(model, func(call *fantasy.Call, err error) bool {
			return !responses.Stores(call, spec.Provider) && fault.HistoryRejected(err, fault.Subject{Spec: spec})
		})
	}
	model = fileurl.Model(&imageModel{model, spec, cache.NewLRUExpireCache(1)}, spec)
	return finish.Model(outputModel{model, spec}, spoken)
}

// protocolOf is the protocol, as the provider of the configuration speaks it.
func protocolOf(spec *v1beta1.ChatModelConfigSpec, apiKey string) (protocol wire.Protocol, err error) {
	switch finish.ProtocolOf(spec) {
	case finish.Messages:
		protocol = messages.New(spec, apiKey)
	case finish.Gemini:
		protocol, err = gemini.New(spec, apiKey)
	case finish.Responses:
		protocol, err = responses.New(spec, apiKey)
	default:
		protocol, err = chatcompletions.New(spec, apiKey)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up provider %s: %w", spec.Provider, err)
	}
	return protocol, nil
}
