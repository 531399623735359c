// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/rewrite"
	"parley.dev/parley/internal/generation/provider/transport"
)

// schema is a JSON schema.
type schema = map[string]any

// schemasKey is where the schemas of a call are in its context, by the names of the tools: fantasy hands that on to the
// transport, and nothing else of ours.
type schemasKey struct{}

// OfferTools returns the context of a call whose tools are sent with their schemas as they are.
func OfferTools(ctx context.Context, call *fantasy.Call) context.Context {
	all := map[string]schema{}
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
	all, ok := r.Context().Value(schemasKey{}).(map[string]schema)
	if !ok || r.Body == nil {
		return t.next.RoundTrip(r)
	}
	r, err := rewrite.Request(r, func(body []byte) ([]byte, error) {
		return rewrite.Blocks(body, "tools", "functionDeclarations",
			func(raw []byte) ([]byte, error) { return declare(raw, all) })
	})
	if err != nil {
		return nil, fmt.Errorf("writing the schemas of tools: %w", err)
	}
	return t.next.RoundTrip(r)
}

// declare returns the declaration of a function with its schema in place of what fantasy made of it.
func declare(raw []byte, all map[string]schema) ([]byte, error) {
	declared := map[string]any{}
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

// Client returns the client, which writes the schemas of tools into the requests of calls that OfferTools prepared.
func Client(client *http.Client) *http.Client {
	return transport.Wrap(client, func(next http.RoundTripper) http.RoundTripper { return schemaTransport{next} })
}
