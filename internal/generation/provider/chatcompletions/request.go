// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatcompletions speaks OpenAI's Chat Completions protocol, with OpenAI, Azure, OpenRouter, Vercel and the
// servers that imitate OpenAI.
//
// Of OpenAI's library it imports the types of requests and events, and no client.
package chatcompletions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/internal/generation/provider/wire"
)

// protocol implements wire.Protocol for one configuration.
type protocol struct {
	spec   *v1beta1.ChatModelConfigSpec
	url    string
	header map[string]string
	// fitSchema is a schema as the provider takes it; nil: it takes every schema.
	fitSchema func(map[string]any) (map[string]any, []string)
}

// New returns the protocol for the provider of a configuration.
func New(spec *v1beta1.ChatModelConfigSpec, key string) (wire.Protocol, error) {
	base, known := baseURLs[spec.Provider]
	if !known {
		return nil, fmt.Errorf("provider %q is not known", spec.Provider)
	}
	at, header, err := wire.OpenAI(spec, key, base, "chat", "completions")
	if err != nil {
		return nil, err
	}
	p := &protocol{spec: spec, url: at, header: header}
	if p.ofOpenAI() {
		p.fitSchema = schema.ForOpenAI
	}
	return p, nil
}

// ofOpenAI reports whether the provider serves OpenAI's own models.
func (p *protocol) ofOpenAI() bool {
	return p.spec.Provider == v1beta1.ProviderOpenAI || p.spec.Provider == v1beta1.ProviderAzure
}

// baseURLs are where each provider is without a baseURL.
var baseURLs = map[v1beta1.ModelProvider]string{
	v1beta1.ProviderOpenAI: "https://api.openai.com/v1", v1beta1.ProviderAzure: "",
	v1beta1.ProviderOpenAICompatible: "", v1beta1.ProviderOpenRouter: "https://openrouter.ai/api/v1",
	v1beta1.ProviderVercel: "https://ai-gateway.vercel.sh/v1",
}

// object is a JSON object.
type object = map[string]any

// builder makes one request.
type builder struct {
	*protocol

	call     *fantasy.Call
	settings wire.Settings
	// fields are those of the request.
	fields   object
	warnings []fantasy.CallWarning
}

func (p *protocol) Request(_ context.Context, call *fantasy.Call) (*wire.Request, []fantasy.CallWarning, error) {
	b := &builder{protocol: p, call: call, settings: wire.SettingsOf(call), fields: object{}}
	b.set(object{
		"model": p.spec.Model, "messages": b.messages(), "stream_options": object{"include_usage": true},
		"max_tokens": call.MaxOutputTokens, "temperature": call.Temperature, "top_p": call.TopP, "top_k": call.TopK,
		"frequency_penalty": call.FrequencyPenalty, "presence_penalty": call.PresencePenalty,
		"stop": b.settings.Stop, "prompt_cache_key": b.settings.CacheKey,
	})
	b.output()
	b.tools()
	extraBody := b.options()
	b.fit()
	if extraBody != nil {
		var as map[string]json.RawMessage
		_ = json.Unmarshal(extraBody.Raw, &as) // The API server has made sure that it is an object.
		for name, value := range as {
			b.fields[name] = value
		}
	}
	b.fields["stream"] = true
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(b.fields); err != nil {
		return nil, nil, fmt.Errorf("writing the request: %w", err)
	}
	return &wire.Request{URL: p.url, Header: p.header, Body: body.Bytes()}, b.warnings, nil
}

// set adds fields, but for those that have no value, and for empty maps.
func (b *builder) set(fields object) {
	for name, value := range fields {
		if v := reflect.ValueOf(value); !v.IsZero() && (v.Kind() != reflect.Map || v.Len() > 0) {
			b.fields[name] = value
		}
	}
}

func (b *builder) tools() {
	functions, warnings := wire.Functions(b.call, b.fitSchema)
	b.warnings = append(b.warnings, warnings...)
	var tools []openai.ChatCompletionToolUnionParam
	for _, f := range functions {
		tools = append(tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: f.Name, Description: openai.String(f.Description), Parameters: f.Schema, Strict: openai.Bool(false),
		}))
	}
	b.set(object{"tools": tools})
	if choice := valueOf(b.call.ToolChoice); len(tools) > 0 {
		switch choice {
		case "", fantasy.ToolChoiceNone, fantasy.ToolChoiceAuto, fantasy.ToolChoiceRequired:
			b.set(object{"tool_choice": choice})
		default:
			b.fields["tool_choice"] = openai.ToolChoiceOptionFunctionToolChoice(
				openai.ChatCompletionNamedToolChoiceFunctionParam{Name: string(choice)})
		}
	}
}

// output asks for JSON. OpenAI refuses most schemas that people write as strict ones.
func (b *builder) output() {
	if out := b.settings.Output; out != nil {
		b.fields["response_format"] = shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: out.Name, Schema: out.Schema,
				Strict: param.NewOpt(schema.IsStrict(out.Schema))}}
	}
}

// reasons are the names of OpenAI's models that reason. Servers for gpt-oss take what they take for other models.
var reasons = regexp.MustCompile(`(?:^|-)o[134]|gpt-5`)

// fit leaves out what the provider or the model does not take, and names the limit of tokens as the model does.
func (b *builder) fit() {
	switch b.spec.Provider { // OpenAI's protocol has no top_k, but the servers that speak it for others do.
	case v1beta1.ProviderOpenAICompatible, v1beta1.ProviderOpenRouter:
	default:
		b.leaveOut("", "top_k")
	}
	switch name := strings.ToLower(b.spec.Model); {
	case strings.Contains(name, "search-preview"):
		b.leaveOut("it is not supported for the search preview models", "temperature")
	case reasons.MatchString(name), b.ofOpenAI() && strings.Contains(name, "gpt-oss"):
		const why = "it is not supported for reasoning models"
		b.leaveOut(why, "temperature", "top_p", "frequency_penalty", "presence_penalty")
		if b.ofOpenAI() {
			b.leaveOut(why, "logit_bias", "logprobs", "top_logprobs", "stop")
		}
		if most, ok := b.fields["max_tokens"]; ok {
			b.fields["max_completion_tokens"] = most
			delete(b.fields, "max_tokens")
		}
	}
}

func (b *builder) leaveOut(why string, names ...string) {
	for _, name := range names {
		if _, ok := b.fields[name]; ok {
			delete(b.fields, name)
			b.warnings = append(b.warnings, wire.Unsupported(name, why))
		}
	}
}
