// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/schema"
)

// schemaModel sends the schemas of tools whole. Of one, fantasy sends to Anthropic the properties, and to Gemini the names, types and
// descriptions of them. What the provider refuses in any schema is left out, and the reply says so.
type schemaModel struct {
	fantasy.LanguageModel
	// fit is the schema as the provider takes it, and the keywords that were left out.
	fit func(object) (object, []string)
	// send makes the call carry the tools as they are, if fantasy does not.
	send func(context.Context, *fantasy.Call) context.Context
}

// withSchemas is the model, which sends the schemas of tools whole.
func withSchemas(model fantasy.LanguageModel, provider v1alpha1.ModelProvider) fantasy.LanguageModel {
	asItIs := func(ctx context.Context, _ *fantasy.Call) context.Context { return ctx }
	switch provider {
	case v1alpha1.ProviderAnthropic, v1alpha1.ProviderBedrock:
		return schemaModel{model, schema.ForAnthropic, sendToAnthropic}
	case v1alpha1.ProviderGoogle:
		return schemaModel{model, schema.ForGemini, sendToGemini}
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

// sendToAnthropic writes the tools into the request by the field of fantasy's options that does that, since Bedrock's requests are
// signed before a transport sees them. Tools that the configuration's own extra_body has go first, as ever.
func sendToAnthropic(ctx context.Context, call *fantasy.Call) context.Context {
	options := anthropic.ProviderOptions{}
	if given, ok := call.ProviderOptions[anthropic.Name].(*anthropic.ProviderOptions); ok {
		options = *given
	}
	for field := range options.ExtraBody {
		if field == "tools" || strings.HasPrefix(field, "tools.") {
			return ctx
		}
	}
	extra := maps.Clone(options.ExtraBody)
	if extra == nil {
		extra = object{}
	}
	maps.Copy(extra, fieldsOf(call.Tools))
	options.ExtraBody = extra
	call.ProviderOptions = maps.Clone(call.ProviderOptions)
	if call.ProviderOptions == nil {
		call.ProviderOptions = fantasy.ProviderOptions{}
	}
	call.ProviderOptions[anthropic.Name] = &options
	return ctx
}

// fieldsOf are the fields of a request that have the tools: one for all, or beside a tool of Anthropic's own, which is fantasy's to
// write, one for the schema of each.
func fieldsOf(all []fantasy.Tool) object {
	whole, schemas := make([]object, 0, len(all)), object{}
	for i, tool := range all {
		if function, ok := tool.(fantasy.FunctionTool); ok {
			whole = append(whole, object{"name": function.Name, "description": function.Description, "input_schema": function.InputSchema})
			schemas[fmt.Sprintf("tools.%d.input_schema", i)] = function.InputSchema
		}
	}
	if len(whole) == len(all) {
		return object{"tools": whole}
	}
	return schemas
}

// schemasKey is where the schemas of a call are in its context, by the names of the tools.
type schemasKey struct{}

func sendToGemini(ctx context.Context, call *fantasy.Call) context.Context {
	all := map[string]object{}
	for _, tool := range call.Tools {
		if function, ok := tool.(fantasy.FunctionTool); ok {
			all[function.Name] = function.InputSchema
		}
	}
	return context.WithValue(ctx, schemasKey{}, all)
}

// schemaTransport writes the schemas of tools into requests to Gemini, in the field that takes JSON schemas.
type schemaTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t schemaTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	all, ok := r.Context().Value(schemasKey{}).(map[string]object)
	if !ok || r.Body == nil {
		return t.next.RoundTrip(r)
	}
	r, err := rewritten(r, func(body []byte) ([]byte, error) {
		return splice(body, "tools", "functionDeclarations", func(raw []byte) ([]byte, error) { return declaration(raw, all) })
	})
	if err != nil {
		return nil, fmt.Errorf("writing the schemas of tools: %w", err)
	}
	return t.next.RoundTrip(r)
}

// declaration is the declaration of a function with its schema in place of what fantasy made of it.
func declaration(raw []byte, all map[string]object) ([]byte, error) {
	declared := object{}
	if err := json.Unmarshal(raw, &declared); err != nil {
		return nil, err
	}
	name, _ := declared["name"].(string)
	whole, ok := all[name]
	if !ok {
		return nil, nil
	}
	delete(declared, "parameters")
	declared["parametersJsonSchema"] = whole
	return json.Marshal(declared)
}

// withSchemaTransport is the client with a schemaTransport.
func withSchemaTransport(client *http.Client) *http.Client {
	return through(client, func(next http.RoundTripper) http.RoundTripper { return schemaTransport{next} })
}
