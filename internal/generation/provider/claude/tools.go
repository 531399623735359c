// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
)

// OfferTools writes the tools of a call into its request with their schemas as they are. It does so by the field of
// fantasy's options that does that, since Bedrock's requests are signed before a transport sees them. Tools that the
// configuration's own extraBody has go first, as ever. The context stays as it is.
func OfferTools(ctx context.Context, call *fantasy.Call) context.Context {
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
		extra = map[string]any{}
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

// fieldsOf are the fields of a request that have the tools: one for all, or beside a tool of Anthropic's own, which is
// fantasy's to write, one for the schema of each.
func fieldsOf(all []fantasy.Tool) map[string]any {
	whole, schemas := make([]map[string]any, 0, len(all)), map[string]any{}
	for i, tool := range all {
		if function, ok := tool.(fantasy.FunctionTool); ok {
			whole = append(whole, map[string]any{
				"name": function.Name, "description": function.Description, "input_schema": function.InputSchema,
			})
			schemas[fmt.Sprintf("tools.%d.input_schema", i)] = function.InputSchema
		}
	}
	if len(whole) == len(all) {
		return map[string]any{"tools": whole}
	}
	return schemas
}
