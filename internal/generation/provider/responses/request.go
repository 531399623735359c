// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responses speaks OpenAI's Responses protocol, to OpenAI and to Azure. Of OpenAI's library it imports the
// types of requests and events, and no client.
package responses

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/internal/generation/provider/wire"
)

type protocol struct {
	spec   *v1beta1.ChatModelConfigSpec
	url    string
	header map[string]string
}

// New returns the protocol for a configuration of OpenAI or Azure. It fails if baseURL is no URL.
func New(spec *v1beta1.ChatModelConfigSpec, apiKey string) (wire.Protocol, error) {
	at, header, err := wire.OpenAI(spec, apiKey, "https://api.openai.com/v1", "responses")
	if err != nil {
		return nil, err
	}
	return &protocol{spec, at, header}, nil
}

func (p *protocol) Request(_ context.Context, call *fantasy.Call) (*wire.Request, []fantasy.CallWarning, error) {
	params, warnings := p.params(call)
	params.SetExtraFields(map[string]any{"stream": true})
	body, err := params.MarshalJSON() // Package json would escape <, > and &.
	if err != nil {
		return nil, nil, fmt.Errorf("writing the request: %w", err)
	}
	return &wire.Request{URL: p.url, Header: p.header, Body: body}, warnings, nil
}

func (p *protocol) Reply(parts *wire.Parts) wire.Reply {
	return &reply{parts: parts, calls: map[int64]string{}, streamed: map[int64]bool{}, done: map[string]bool{}}
}

// Models of which OpenAI's documentation says that they think, and that they have a service tier. Those of gpt-5-chat
// do neither, and gpt-5-nano has no priority.
var (
	reasoningModels = regexp.MustCompile(`(?i)(?:^|-)(?:o[134]|oss)|gpt-5|codex-|computer-use`)
	flexModels      = regexp.MustCompile(`(?i)(?:^|-)o3|o4-mini|gpt-5`)
	priorityModels  = regexp.MustCompile(`(?i)(?:^|-)o3|o4-mini|gpt-[45]`)
	chatModels      = regexp.MustCompile(`(?i)gpt-5-chat`)
	nanoModels      = regexp.MustCompile(`(?i)gpt-5-nano`)
)

// hasTier reports whether the model has the service tier.
func hasTier(model, tier string) bool {
	switch tier {
	case "flex":
		return flexModels.MatchString(model) && !chatModels.MatchString(model)
	case "priority":
		return priorityModels.MatchString(model) && !chatModels.MatchString(model) && !nanoModels.MatchString(model)
	}
	return true
}

// optionsOf are the provider's options of a call; the zero value if there are none.
func optionsOf(call *fantasy.Call, provider v1beta1.ModelProvider) (o v1beta1.OpenAIResponsesOptions) {
	configured := wire.SettingsOf(call).Provider
	if provider == v1beta1.ProviderAzure {
		configured.OpenAIResponses = configured.AzureResponses
	}
	if configured.OpenAIResponses != nil {
		o = *configured.OpenAIResponses
	}
	return o
}

// Stores reports whether the provider keeps the replies to a call, and with them the reasoning that a later call names.
func Stores(call *fantasy.Call, provider v1beta1.ModelProvider) bool {
	return isSet(optionsOf(call, provider).Store)
}

// params are the parameters of a call.
func (p *protocol) params(call *fantasy.Call) (*responses.ResponseNewParams, []fantasy.CallWarning) {
	settings, o := wire.SettingsOf(call), optionsOf(call, p.spec.Provider)
	o.ReasoningEffort = cmp.Or(v1beta1.OpenAIReasoningEffort(strings.ToLower(string(settings.Effort))), o.ReasoningEffort)
	thinks := reasoningModels.MatchString(p.spec.Model) && !chatModels.MatchString(p.spec.Model)
	warnings := p.leftOut(call, &o, thinks)
	r := &responses.ResponseNewParams{
		Model: p.spec.Model, MaxOutputTokens: option(call.MaxOutputTokens), Store: param.NewOpt(isSet(o.Store)),
		Instructions: text(o.Instructions), MaxToolCalls: option(o.MaxToolCalls), TopLogprobs: option(o.TopLogProbs),
		ParallelToolCalls: option(o.ParallelToolCalls), SafetyIdentifier: text(o.SafetyIdentifier), User: text(o.User),
		PromptCacheKey: text(cmp.Or(o.PromptCacheKey, settings.CacheKey)),
	}
	r.Input.OfInputItemList = input(call.Prompt, thinks, isSet(o.Store))
	if thinks {
		r.Reasoning.Effort = shared.ReasoningEffort(o.ReasoningEffort)
		r.Reasoning.Summary = shared.ReasoningSummary(o.ReasoningSummary)
	} else {
		r.Temperature, r.TopP = option(call.Temperature), option(call.TopP)
	}
	if hasTier(p.spec.Model, o.ServiceTier) {
		r.ServiceTier = responses.ResponseNewParamsServiceTier(o.ServiceTier)
	}
	if o.TopLogProbs != nil {
		r.Include = append(r.Include, responses.ResponseIncludableMessageOutputTextLogprobs)
	}
	for _, name := range o.Include {
		r.Include = append(r.Include, responses.ResponseIncludable(name))
	}
	for i, entry := range o.Metadata {
		if i == 0 {
			r.Metadata = shared.Metadata{}
		}
		r.Metadata[entry.Name] = entry.Value
	}
	if settings.Output != nil {
		r.Text.Format = formatOf(settings.Output)
	}
	warnings = append(warnings, setTools(r, call, isSet(o.StrictJSONSchema))...)
	slices.Sort(r.Include)
	r.Include = slices.Compact(r.Include)
	return r, warnings
}

// leftOut are the settings that the protocol or the model does not have.
func (p *protocol) leftOut(call *fantasy.Call, o *v1beta1.OpenAIResponsesOptions,
	thinks bool) (warnings []fantasy.CallWarning) {
	const thinking, plain = " is not supported for reasoning models", " is not supported for non-reasoning models"
	for _, s := range []struct {
		name, why string
		left      bool
	}{
		{"topK", "", call.TopK != nil},
		{"presencePenalty", "", call.PresencePenalty != nil},
		{"frequencyPenalty", "", call.FrequencyPenalty != nil},
		{"stop", "", len(wire.SettingsOf(call).Stop) > 0},
		{"temperature", "temperature" + thinking, thinks && call.Temperature != nil},
		{"topP", "topP" + thinking, thinks && call.TopP != nil},
		{"reasoningEffort", "reasoningEffort" + plain, !thinks && o.ReasoningEffort != ""},
		{"reasoningSummary", "reasoningSummary" + plain, !thinks && o.ReasoningSummary != ""},
		{"serviceTier", "the model has no " + o.ServiceTier + " processing", !hasTier(p.spec.Model, o.ServiceTier)},
	} {
		if s.left {
			warnings = append(warnings, wire.Unsupported(s.name, s.why))
		}
	}
	return warnings
}

// setTools sets the tools, and how the model may choose among them.
func setTools(r *responses.ResponseNewParams, call *fantasy.Call, strict bool) []fantasy.CallWarning {
	functions, warnings := wire.Functions(call, schema.ForOpenAI)
	if search := wire.OfProvider(call, wire.WebSearch); search != nil {
		r.Tools = append(r.Tools, responses.ToolUnionParam{OfWebSearch: webSearch(search.Args)})
		if search.Args[wire.BlockedDomains] != nil {
			warnings = append(warnings, wire.Unsupported(wire.BlockedDomains, ""))
		}
	}
	if wire.OfProvider(call, wire.CodeExecution) != nil {
		r.Tools = append(r.Tools, responses.ToolParamOfCodeInterpreter(
			responses.ToolCodeInterpreterContainerCodeInterpreterContainerAutoParam{}))
		r.Include = append(r.Include, responses.ResponseIncludableCodeInterpreterCallOutputs)
	}
	for _, f := range functions {
		r.Tools = append(r.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: f.Name,
			Description: param.NewOpt(f.Description), Parameters: f.Schema, Strict: param.NewOpt(strict)}})
	}
	if call.ToolChoice == nil || len(r.Tools) == 0 {
		return warnings
	}
	switch choice := *call.ToolChoice; choice {
	case fantasy.ToolChoiceAuto, fantasy.ToolChoiceNone, fantasy.ToolChoiceRequired:
		r.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptions(choice))
	default:
		r.ToolChoice.OfFunctionTool = &responses.ToolChoiceFunctionParam{Name: string(choice)}
	}
	return warnings
}

// webSearch is the search of the web with these Args.
func webSearch(args map[string]any) *responses.WebSearchToolParam {
	location := func(name string) param.Opt[string] {
		value, _ := args[name].(string)
		return text(value)
	}
	tool := &responses.WebSearchToolParam{Type: responses.WebSearchToolTypeWebSearch,
		UserLocation: responses.WebSearchToolUserLocationParam{City: location(wire.City), Region: location(wire.Region),
			Country: location(wire.Country), Timezone: location(wire.Timezone)}}
	if !param.IsOmitted(tool.UserLocation) {
		tool.UserLocation.Type = "approximate"
	}
	tool.Filters.AllowedDomains, _ = args[wire.AllowedDomains].([]string)
	return tool
}

// formatOf is the form of a reply that is JSON.
func formatOf(output *wire.Output) responses.ResponseFormatTextConfigUnionParam {
	format := responses.ResponseFormatTextConfigParamOfJSONSchema(output.Name, output.Schema)
	format.OfJSONSchema.Strict = param.NewOpt(schema.IsStrict(output.Schema))
	return format
}

func isSet(option *bool) bool { return option != nil && *option }

func option[T comparable](value *T) (o param.Opt[T]) {
	if value != nil {
		o = param.NewOpt(*value)
	}
	return o
}

// text is an option that an empty text does not set.
func text(value string) param.Opt[string] {
	if value == "" {
		return param.Opt[string]{}
	}
	return param.NewOpt(value)
}
