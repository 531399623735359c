// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"
	"google.golang.org/genai"

	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/internal/generation/provider/wire"
)

// ownTools are the tools that Google runs.
var ownTools = []struct {
	name string
	tool genai.Tool
}{
	{wire.WebSearch, genai.Tool{GoogleSearch: &genai.GoogleSearch{}}},
	{wire.CodeExecution, genai.Tool{CodeExecution: &genai.ToolCodeExecution{}}},
}

// noFunctionName matches names of tools that get the prefix _.
var noFunctionName = regexp.MustCompile(`^_*[^A-Za-z_]`)

// functionName is the name of a tool as Google takes it: a name of a function begins with a letter or _.
func functionName(tool string) string {
	if noFunctionName.MatchString(tool) {
		return "_" + tool
	}
	return tool
}

// toolName is the tool whose functionName is that.
func toolName(function string) string {
	if tool, prefixed := strings.CutPrefix(function, "_"); prefixed && noFunctionName.MatchString(tool) {
		return tool
	}
	return function
}

// offer writes the tools of the call.
func (p *protocol) offer(b *body, call *fantasy.Call) []fantasy.CallWarning {
	functions, warnings := wire.Functions(call, schema.ForGemini)
	if len(functions) > 0 {
		declared := &genai.Tool{}
		for _, f := range functions {
			declared.FunctionDeclarations = append(declared.FunctionDeclarations,
				&genai.FunctionDeclaration{Name: functionName(f.Name), Description: f.Description, ParametersJsonSchema: f.Schema})
		}
		b.Tools = append(b.Tools, declared)
	}
	for i := range ownTools {
		name := ownTools[i].name
		offered := wire.OfProvider(call, name)
		switch {
		case offered == nil:
			continue
		case len(functions) > 0 && p.aloneBecause != "":
			warnings = append(warnings, wire.Unsupported(name, p.aloneBecause))
			continue
		}
		for _, arg := range slices.Sorted(maps.Keys(offered.Args)) {
			warnings = append(warnings, wire.Unsupported(name+"."+arg, "Gemini does not take it"))
		}
		b.Tools = append(b.Tools, &ownTools[i].tool)
		b.showsOwnCalls = b.showsOwnCalls || len(functions) > 0
	}
	b.ToolConfig = toolConfig(call.ToolChoice, len(functions) > 0, b.showsOwnCalls)
	return warnings
}

// toolConfig says which functions the model may and must call, and whether calls of Google's tools are shown, which
// Google demands where both are offered. It refuses the mode AUTO then, and has another one for the same.
func toolConfig(choice *fantasy.ToolChoice, functions, showsOwnCalls bool) *genai.ToolConfig {
	c := &genai.ToolConfig{}
	if showsOwnCalls {
		c.IncludeServerSideToolInvocations = new(true)
	}
	if functions && choice != nil && (!showsOwnCalls || *choice != fantasy.ToolChoiceAuto) {
		f := &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAny}
		switch *choice {
		case fantasy.ToolChoiceAuto:
			f.Mode = genai.FunctionCallingConfigModeAuto
		case fantasy.ToolChoiceNone:
			f.Mode = genai.FunctionCallingConfigModeNone
		case fantasy.ToolChoiceRequired:
		default:
			f.AllowedFunctionNames = []string{functionName(string(*choice))}
		}
		c.FunctionCallingConfig = f
	}
	if *c == (genai.ToolConfig{}) {
		return nil
	}
	return c
}

// format writes the form of the reply. Models before Gemini 3 take none next to tools, and are not asked for one.
func format(b *body, output *wire.Output) (warnings []fantasy.CallWarning) {
	if output == nil {
		return nil
	}
	b.GenerationConfig.ResponseMIMEType = "application/json"
	fitting, left := schema.ForGemini(output.Schema)
	b.GenerationConfig.ResponseJsonSchema = fitting
	for _, keyword := range left {
		warnings = append(warnings, wire.Unsupported("output", "the provider does not take "+keyword))
	}
	return warnings
}
