// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"slices"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/generation/schema"
)

// include asks for more in the reply, once.
func (b *builder) include(more responses.ResponseIncludable) {
	if !slices.Contains(b.Include, more) {
		b.Include = append(b.Include, more)
	}
}

// tools sets the tools, and how the model may choose among them.
func (b *builder) tools() {
	if search := wire.OfProvider(b.call, wire.WebSearch); search != nil {
		b.Tools = append(b.Tools, responses.ToolUnionParam{OfWebSearch: b.webSearch(search.Args)})
	}
	if wire.OfProvider(b.call, wire.CodeExecution) != nil {
		b.Tools = append(b.Tools, responses.ToolParamOfCodeInterpreter(
			responses.ToolCodeInterpreterContainerCodeInterpreterContainerAutoParam{}))
		b.include(responses.ResponseIncludableCodeInterpreterCallOutputs)
	}
	functions, warnings := wire.Functions(b.call, schema.ForOpenAI)
	b.warnings = append(b.warnings, warnings...)
	strict := b.options.StrictJSONSchema != nil && *b.options.StrictJSONSchema
	for _, f := range functions {
		b.Tools = append(b.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: f.Name,
			Description: param.NewOpt(f.Description), Parameters: f.Schema, Strict: param.NewOpt(strict)}})
	}
	if b.call.ToolChoice == nil || len(b.Tools) == 0 {
		return
	}
	switch choice := *b.call.ToolChoice; choice {
	case fantasy.ToolChoiceAuto, fantasy.ToolChoiceNone, fantasy.ToolChoiceRequired:
		b.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptions(choice))
	default:
		b.ToolChoice.OfFunctionTool = &responses.ToolChoiceFunctionParam{Name: string(choice)}
	}
}

// webSearch is OpenAI's search of the web.
func (b *builder) webSearch(args map[string]any) *responses.WebSearchToolParam {
	said := func(name string) param.Opt[string] {
		value, _ := args[name].(string)
		return text(strings.TrimSpace(value))
	}
	tool := &responses.WebSearchToolParam{Type: responses.WebSearchToolTypeWebSearch}
	tool.Filters.AllowedDomains, _ = args[wire.AllowedDomains].([]string)
	place := responses.WebSearchToolUserLocationParam{City: said(wire.City), Region: said(wire.Region),
		Country: said(wire.Country), Timezone: said(wire.Timezone)}
	if !param.IsOmitted(place) {
		place.Type = "approximate"
		tool.UserLocation = place
	}
	if blocked, _ := args[wire.BlockedDomains].([]string); len(blocked) > 0 {
		b.leaveOut(wire.BlockedDomains, "OpenAI's search of the web takes allowed domains only")
	}
	return tool
}

// format asks for a reply that is JSON, if the call does.
func (b *builder) format() {
	output := b.settings.Output
	switch {
	case output == nil:
	case output.Schema == nil:
		b.Text.Format.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	default:
		fitting, left := schema.ForOpenAI(output.Schema)
		if len(left) > 0 {
			b.leaveOut("output", "of its schema the provider does not take "+strings.Join(left, ", "))
		}
		b.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{Name: output.Name, Schema: fitting}
	}
}
