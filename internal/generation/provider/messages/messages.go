// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package messages speaks Anthropic's Messages protocol: with Anthropic and who imitates it, and with AWS Bedrock. Its
// requests and events are types of Anthropic's SDK; it imports no client, and of Parley's protocols package wire alone.
package messages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"charm.land/fantasy"
	"github.com/tidwall/sjson"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/wire"
)

const (
	// defaultURL is where Anthropic is called.
	defaultURL = "https://api.anthropic.com"
	// version of the protocol.
	version = "2023-06-01"
)

// protocol is the Messages protocol of one configuration.
type protocol struct {
	spec *v1alpha1.ChatModelConfigSpec
	key  string
	// bedrock is nil unless the provider is Bedrock.
	bedrock *bedrock
}

// New returns the protocol of a configuration of the providers anthropic and bedrock. Bedrock without a key signs its
// requests with the credentials of the environment.
func New(spec *v1alpha1.ChatModelConfigSpec, key string) wire.Protocol {
	p := &protocol{spec: spec, key: key}
	if spec.Provider == v1alpha1.ProviderBedrock {
		p.bedrock = newBedrock(spec, key)
	}
	return p
}

// Request implements wire.Protocol.
func (p *protocol) Request(_ context.Context, call *fantasy.Call) (*wire.Request, []fantasy.CallWarning, error) {
	b := p.newBuilder(call)
	b.build()
	body, err := p.body(b)
	if err != nil {
		return nil, nil, err
	}
	request := &wire.Request{Header: map[string]string{"Anthropic-Version": version}, Body: body}
	if p.bedrock != nil {
		request.Sign = p.bedrock.sign
		request.URL, err = p.bedrock.url()
		return request, b.warnings, err
	}
	if p.key != "" {
		request.Header["X-Api-Key"] = p.key
	}
	base, err := url.Parse(cmp.Or(p.spec.BaseURL, defaultURL))
	if err != nil {
		return nil, nil, err
	}
	request.URL = base.JoinPath("v1", "messages").String()
	return request, b.warnings, nil
}

// Reply implements wire.Protocol.
func (p *protocol) Reply(parts *wire.Parts) wire.Reply {
	return &reply{parts: parts, open: map[int64]*block{}}
}

// body is the request as JSON. The fields of extraBody go last, each at the path that its name is.
func (p *protocol) body(b *builder) ([]byte, error) {
	extra := map[string]any{"stream": true}
	if p.bedrock != nil {
		extra = bedrockFields(p.spec.Headers)
	}
	b.params.SetExtraFields(extra)
	body, err := json.Marshal(b.params)
	if err != nil || b.options.ExtraBody == nil {
		return body, err
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(b.options.ExtraBody.Raw, &fields) // The API server has made sure that it is an object.
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if body, err = sjson.SetRawBytes(body, name, fields[name]); err != nil {
			return nil, fmt.Errorf("setting field %q of extraBody: %w", name, err)
		}
	}
	return body, nil
}

// betaHeader names the beta features that a request uses.
var betaHeader = http.CanonicalHeaderKey("anthropic-beta")
