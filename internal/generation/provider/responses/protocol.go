// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responses speaks OpenAI's Responses protocol, to OpenAI and to Azure. It may import package wire with what
// that imports, fault, prompt, schema and the types of OpenAI's SDK, but no client of it.
package responses

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"

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
	azure := spec.Provider == v1alpha1.ProviderAzure
	base, header := cmp.Or(spec.BaseURL, "https://api.openai.com/v1"), map[string]string{}
	if azure {
		base, header["Api-Key"] = azureURL(base), apiKey
	} else if apiKey != "" {
		header["Authorization"] = "Bearer " + apiKey
	}
	at, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("reading baseURL: %w", err)
	}
	at = at.JoinPath("responses")
	if azure && spec.APIVersion != "" {
		query := at.Query()
		query.Set("api-version", spec.APIVersion)
		at.RawQuery = query.Encode()
	}
	return &protocol{spec, at.String(), header}, nil
}

// azureHost is how Azure names the host of a resource; the resource is the first group.
var azureHost = regexp.MustCompile(
	`^https?://([a-zA-Z0-9-]+)\.(?:openai|cognitiveservices|services\.ai)\.azure\.com(?:/.*)?$`)

// azureURL is where a resource speaks OpenAI's protocols; any other URL is one already.
func azureURL(base string) string {
	if m := azureHost.FindStringSubmatch(base); m != nil {
		return fmt.Sprintf("https://%s.openai.azure.com/openai/v1", m[1])
	}
	return base
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
	return &reply{parts: parts, calls: map[int64]string{}, streamed: map[int64]bool{}}
}
