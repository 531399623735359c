// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"charm.land/fantasy"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/generation/schema"
)

// defaultMaxTokens is sent for a call that does not say how long its reply can be: the protocol demands a number.
const defaultMaxTokens = 4096

// builder builds the request of a call.
type builder struct {
	spec     *v1alpha1.ChatModelConfigSpec
	call     *fantasy.Call
	settings wire.Settings
	options  v1alpha1.AnthropicOptions
	params   anthropic.MessageNewParams
	warnings []fantasy.CallWarning
}

func (p *protocol) newBuilder(call *fantasy.Call) *builder {
	b := &builder{spec: p.spec, call: call, settings: wire.SettingsOf(call)}
	options := b.settings.Provider.Anthropic
	if p.bedrock != nil {
		options = b.settings.Provider.Bedrock
	} else {
		b.params.Model = p.spec.Model
	}
	if options != nil {
		b.options = *options
	}
	return b
}

func (b *builder) leaveOut(setting, why string) {
	b.warnings = append(b.warnings, wire.Unsupported(setting, why))
}

func (b *builder) build() {
	b.params.MaxTokens = defaultMaxTokens
	if most := b.call.MaxOutputTokens; most != nil {
		b.params.MaxTokens = *most
	}
	b.params.StopSequences = b.settings.Stop
	for i := range b.call.Prompt {
		b.message(&b.call.Prompt[i])
	}
	b.dropUnsaid()
	b.tools()
	b.think()
	b.chooseTool()
	b.sample()
	if output := b.settings.Output; output != nil && output.Schema != nil {
		b.params.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: output.Schema}
	} else if output != nil {
		b.leaveOut("output", "the provider takes no JSON output without a schema")
	}
}

// sample says how the next token is chosen. Claude refuses that while it thinks.
func (b *builder) sample() {
	thinks := b.params.Thinking != anthropic.ThinkingConfigParamUnion{} || b.params.OutputConfig.Effort != ""
	b.params.Temperature = sampling(b, "temperature", b.call.Temperature, thinks)
	b.params.TopP = sampling(b, "topP", b.call.TopP, thinks)
	b.params.TopK = sampling(b, "topK", b.call.TopK, thinks)
	const unknown = "the provider has no such setting"
	if b.call.FrequencyPenalty != nil {
		b.leaveOut("frequencyPenalty", unknown)
	}
	if b.call.PresencePenalty != nil {
		b.leaveOut("presencePenalty", unknown)
	}
}

func sampling[T int64 | float64](b *builder, setting string, value *T, thinks bool) (set param.Opt[T]) {
	switch {
	case value == nil:
	case thinks:
		b.leaveOut(setting, "it is not supported while the model thinks")
	default:
		return param.NewOpt(*value)
	}
	return set
}

// tools offers the tools of the call, those of the provider first.
func (b *builder) tools() {
	if search := wire.OfProvider(b.call, wire.WebSearch); search != nil {
		b.params.Tools = append(b.params.Tools, webSearch(search.Args))
	}
	if wire.OfProvider(b.call, wire.CodeExecution) != nil {
		b.params.Tools = append(b.params.Tools, anthropic.ToolUnionParam{
			OfCodeExecutionTool20260521: &anthropic.CodeExecutionTool20260521Param{}})
	}
	functions, warnings := wire.Functions(b.call, schema.ForAnthropic)
	b.warnings = append(b.warnings, warnings...)
	for _, f := range functions {
		b.params.Tools = append(b.params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: f.Name, Description: param.NewOpt(f.Description),
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](f.Schema),
		}})
	}
}

func webSearch(args map[string]any) anthropic.ToolUnionParam {
	said := func(name string) (text param.Opt[string]) {
		if value, _ := args[name].(string); value != "" {
			text = param.NewOpt(value)
		}
		return text
	}
	allowed, _ := args[wire.AllowedDomains].([]string)
	blocked, _ := args[wire.BlockedDomains].([]string)
	return anthropic.ToolUnionParam{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{
		AllowedDomains: allowed, BlockedDomains: blocked,
		UserLocation: anthropic.UserLocationParam{City: said(wire.City), Region: said(wire.Region),
			Country: said(wire.Country), Timezone: said(wire.Timezone)},
	}}
}

// chooseTool says which tools the model is to call, if the call says so. A model that is made to call one cannot think.
func (b *builder) chooseTool() {
	choice, single := b.call.ToolChoice, param.Opt[bool]{}
	if b.options.DisableParallelToolUse != nil && *b.options.DisableParallelToolUse {
		if choice == nil {
			choice = new(fantasy.ToolChoiceAuto)
		}
		if b.spec.Provider != v1alpha1.ProviderBedrock { // It does not know the field.
			single = param.NewOpt(true)
		}
	}
	if choice == nil || len(b.params.Tools) == 0 {
		return
	}
	switch *choice {
	case fantasy.ToolChoiceAuto:
		b.params.ToolChoice.OfAuto = &anthropic.ToolChoiceAutoParam{DisableParallelToolUse: single}
		return
	case fantasy.ToolChoiceNone:
		b.params.ToolChoice.OfNone = new(anthropic.NewToolChoiceNoneParam())
		return
	case fantasy.ToolChoiceRequired:
		b.params.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{DisableParallelToolUse: single}
	default:
		b.params.ToolChoice.OfTool = &anthropic.ToolChoiceToolParam{Name: string(*choice), DisableParallelToolUse: single}
	}
	if (b.params.Thinking != anthropic.ThinkingConfigParamUnion{}) {
		b.params.Thinking = anthropic.ThinkingConfigParamUnion{}
		b.leaveOut("thinking", "it is not supported where the model has to call a tool")
	}
}
