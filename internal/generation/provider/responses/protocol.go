// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responses speaks OpenAI's Responses protocol, to OpenAI and to Azure. Of OpenAI's library it imports the
// types of requests and events, and no client.
package responses

import (
	"context"
	"fmt"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/wire"
)

type protocol struct {
	spec   *v1alpha1.ChatModelConfigSpec
	url    string
	header map[string]string
}

// New returns the protocol for a configuration of OpenAI or Azure. It fails if baseURL is no URL.
func New(spec *v1alpha1.ChatModelConfigSpec, apiKey string) (wire.Protocol, error) {
	at, header, err := wire.OpenAI(spec, apiKey, "https://api.openai.com/v1", "responses")
	if err != nil {
		return nil, err
	}
	return &protocol{spec, at, header}, nil
}

// Request implements wire.Protocol.
func (p *protocol) Request(_ context.Context, call *fantasy.Call) (*wire.Request, []fantasy.CallWarning, error) {
	params, warnings := p.params(call)
	params.SetExtraFields(map[string]any{"stream": true})
	body, err := params.MarshalJSON() // Package json would escape <, > and &.
	if err != nil {
		return nil, nil, fmt.Errorf("writing the request: %w", err)
	}
	return &wire.Request{URL: p.url, Header: p.header, Body: body}, warnings, nil
}

// Reply implements wire.Protocol.
func (p *protocol) Reply(parts *wire.Parts) wire.Reply {
	return &reply{parts: parts, calls: map[int64]string{}, streamed: map[int64]bool{}, done: map[string]bool{}}
}
