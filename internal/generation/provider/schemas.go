// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/schema"
)

// schemaModel sends the schemas of tools whole. What the provider refuses in any schema is left out, and the reply says
// so.
type schemaModel struct {
	fantasy.LanguageModel
	// fit is the schema as the provider takes it, and the keywords that were left out.
	fit func(map[string]any) (map[string]any, []string)
	// send makes the call carry the tools as they are, if fantasy does not.
	send func(context.Context, *fantasy.Call) context.Context
}

// withSchemas is the model, which sends the schemas of tools whole.
func withSchemas(model fantasy.LanguageModel, provider v1alpha1.ModelProvider) fantasy.LanguageModel {
	asItIs := func(ctx context.Context, _ *fantasy.Call) context.Context { return ctx }
	switch provider {
	case v1alpha1.ProviderOpenAI, v1alpha1.ProviderAzure:
		return schemaModel{model, schema.ForOpenAI, asItIs}
	}
	return model
}

// prepare makes the call one with the schemas as the provider takes them.
func (m schemaModel) prepare(ctx context.Context, call *fantasy.Call) (context.Context, []fantasy.CallWarning) {
	if len(call.Tools) == 0 {
		return ctx, nil
	}
	var warnings []fantasy.CallWarning
	call.Tools = slices.Clone(call.Tools)
	for i, tool := range call.Tools {
		function, ok := tool.(fantasy.FunctionTool)
		if !ok {
			continue // It is one of the provider's own.
		}
		fitting, left := m.fit(function.InputSchema)
		if len(left) > 0 {
			warnings = append(warnings, fantasy.CallWarning{
				Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: "inputSchema",
				Details: fmt.Sprintf("of tool %s the provider does not take %s", function.Name, strings.Join(left, ", ")),
			})
		}
		function.InputSchema = fitting
		call.Tools[i] = function
	}
	return m.send(ctx, call), warnings
}

// Stream implements fantasy.LanguageModel.
func (m schemaModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	ctx, warnings := m.prepare(ctx, &call)
	stream, err := m.LanguageModel.Stream(ctx, call)
	if err != nil || len(warnings) == 0 {
		return stream, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		if !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeWarnings, Warnings: warnings}) {
			return
		}
		stream(yield)
	}, nil
}

// Generate implements fantasy.LanguageModel.
func (m schemaModel) Generate(ctx context.Context, call fantasy.Call) (*fantasy.Response, error) {
	ctx, warnings := m.prepare(ctx, &call)
	response, err := m.LanguageModel.Generate(ctx, call)
	if err == nil {
		response.Warnings = append(response.Warnings, warnings...)
	}
	return response, err
}
