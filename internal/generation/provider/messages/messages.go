// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package messages speaks Anthropic's Messages protocol, to Anthropic, to servers that imitate it, and to AWS Bedrock.
// Of Anthropic's library it imports the types of requests and events, and no client.
package messages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"charm.land/fantasy"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/wire"
)

type protocol struct {
	spec *v1beta1.ChatModelConfigSpec
	key  string
	// bedrock is nil unless that is the provider.
	bedrock *bedrock
}

// New returns the protocol of a configuration of the providers anthropic and bedrock. Requests to Bedrock without a key
// are signed with the AWS credentials of the environment.
func New(spec *v1beta1.ChatModelConfigSpec, key string) wire.Protocol {
	p := &protocol{spec: spec, key: key}
	if spec.Provider == v1beta1.ProviderBedrock {
		p.bedrock = newBedrock(spec, key)
	}
	return p
}

func (p *protocol) Reply(parts *wire.Parts) wire.Reply {
	return &reply{parts: parts, open: map[int64]*block{}}
}

func (p *protocol) Request(_ context.Context, call *fantasy.Call) (*wire.Request, []fantasy.CallWarning, error) {
	b := p.build(call)
	body, err := b.body()
	if err != nil {
		return nil, nil, err
	}
	request := &wire.Request{Header: map[string]string{"Anthropic-Version": "2023-06-01"}, Body: body}
	if p.bedrock != nil {
		return request, b.warnings, p.bedrock.address(request)
	}
	if p.key != "" {
		request.Header["X-Api-Key"] = p.key
	}
	base, err := url.Parse(cmp.Or(p.spec.BaseURL, "https://api.anthropic.com"))
	if err != nil {
		return nil, nil, err
	}
	request.URL = base.JoinPath("v1", "messages").String()
	return request, b.warnings, nil
}

// builder builds the request of a call.
type builder struct {
	*protocol
	call     *fantasy.Call
	settings wire.Settings
	options  v1beta1.AnthropicOptions
	claude   Claude
	params   anthropic.MessageNewParams
	warnings []fantasy.CallWarning
}

func (p *protocol) build(call *fantasy.Call) *builder {
	b := &builder{protocol: p, call: call, settings: wire.SettingsOf(call), claude: ClaudeOf(p.spec.Model)}
	b.params.MaxTokens = 4096 // The protocol demands a number.
	if call.MaxOutputTokens != nil {
		b.params.MaxTokens = *call.MaxOutputTokens
	}
	options := b.settings.Provider.Anthropic
	if p.bedrock != nil {
		options = b.settings.Provider.Bedrock
		b.params.SetExtraFields(bedrockFields(p.spec.Headers))
	} else {
		b.params.Model = p.spec.Model
		b.params.SetExtraFields(object{"stream": true})
	}
	if options != nil {
		b.options = *options
	}
	b.params.StopSequences = b.settings.Stop
	b.prompt()
	b.tools()
	b.think()
	b.choose()
	b.sample()
	if output := b.settings.Output; output != nil {
		b.params.OutputConfig.Format.Schema = output.Schema
	}
	return b
}

// warnIf warns of a setting that is omitted.
func (b *builder) warnIf(omitted bool, setting, why string) {
	if omitted {
		b.warnings = append(b.warnings, wire.Unsupported(setting, why))
	}
}

// sample sets how tokens are chosen. Claude refuses these settings while it thinks, and from Opus 4.7 on always.
func (b *builder) sample() {
	call, why := b.call, ""
	switch {
	case b.claude.Adaptive:
		why = "the model takes no such setting"
	case !param.IsOmitted(b.params.Thinking) || b.params.OutputConfig.Effort != "":
		why = "it is not supported while the model thinks"
	}
	b.warnIf(why != "" && call.Temperature != nil, "temperature", why)
	b.warnIf(why != "" && call.TopP != nil, "topP", why)
	b.warnIf(why != "" && call.TopK != nil, "topK", why)
	const unknown = "the provider has no such setting"
	b.warnIf(call.FrequencyPenalty != nil, "frequencyPenalty", unknown)
	b.warnIf(call.PresencePenalty != nil, "presencePenalty", unknown)
	if why == "" {
		b.params.Temperature, b.params.TopP, b.params.TopK = optional(call.Temperature), optional(call.TopP),
			optional(call.TopK)
	}
}

func optional[T comparable](value *T) (set param.Opt[T]) {
	if value != nil {
		set = param.NewOpt(*value)
	}
	return set
}

// body is the request as JSON. The fields of extraBody go before all others but stream. The SDK would take their names
// for paths.
func (b *builder) body() ([]byte, error) {
	body, err := json.Marshal(b.params)
	if err != nil || b.options.ExtraBody == nil {
		return body, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	stream, streams := fields["stream"]
	_ = json.Unmarshal(b.options.ExtraBody.Raw, &fields) // The API server has made sure that it is an object.
	if streams {
		fields["stream"] = stream
	}
	return json.Marshal(fields)
}
