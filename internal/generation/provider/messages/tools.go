// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"

	"charm.land/fantasy"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/internal/generation/provider/wire"
)

// tools offers the tools of the call, those that the provider runs first.
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

func webSearch(args object) anthropic.ToolUnionParam {
	text := func(name string) (set param.Opt[string]) {
		if value, ok := args[name].(string); ok {
			set = param.NewOpt(value)
		}
		return set
	}
	search := &anthropic.WebSearchTool20250305Param{UserLocation: anthropic.UserLocationParam{City: text(wire.City),
		Region: text(wire.Region), Country: text(wire.Country), Timezone: text(wire.Timezone)}}
	search.AllowedDomains, _ = args[wire.AllowedDomains].([]string)
	search.BlockedDomains, _ = args[wire.BlockedDomains].([]string)
	return anthropic.ToolUnionParam{OfWebSearchTool20250305: search}
}

var choices = map[fantasy.ToolChoice]string{
	fantasy.ToolChoiceAuto: "auto", fantasy.ToolChoiceNone: "none", fantasy.ToolChoiceRequired: "any",
}

// choose says which tools the model is to call. The provider takes no choice among none, and no thinking where one has
// to be called.
func (b *builder) choose() {
	toolChoice, single := optional(b.call.ToolChoice), optional(b.options.DisableParallelToolUse).Value
	if len(b.params.Tools) == 0 || !toolChoice.Valid() && !single {
		return
	}
	name := toolChoice.Or(fantasy.ToolChoiceAuto)
	kind := cmp.Or(choices[name], "tool")
	if kind == "tool" || kind == "any" {
		kind = b.force(kind)
	}
	choice := object{"type": kind}
	if kind == "tool" {
		choice["name"] = name
	}
	if single && kind != "none" && b.bedrock == nil { // Bedrock does not know the field.
		choice["disable_parallel_tool_use"] = true
	}
	b.params.ToolChoice = param.Override[anthropic.ToolChoiceUnionParam](choice)
}

// force returns a kind of choice that forces the model to call a tool, without thinking, or else the one that does not.
func (b *builder) force(kind string) string {
	if b.claude.Unforced {
		b.warnIf(true, "toolChoice", "the model cannot be forced to call a tool")
		return choices[fantasy.ToolChoiceAuto]
	}
	b.warnIf(b.isToThink(), "thinking", "the model has to call a tool")
	if b.params.Thinking.OfDisabled == nil && b.params.Thinking.OfBetweenTools == nil {
		b.params.Thinking = anthropic.ThinkingConfigParamUnion{}
	}
	return kind
}

// isToThink reports whether the settings have the model think.
func (b *builder) isToThink() bool {
	return b.settings.Effort != v1beta1.EffortNone &&
		(b.params.Thinking.OfEnabled != nil || b.params.OutputConfig.Effort != "" || b.options.Thinking != nil)
}
