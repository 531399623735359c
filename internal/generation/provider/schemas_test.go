// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// foreign is a schema as servers of tools have them, with everything that a conversion could lose.
const foreign = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"required":["query","filters"],
	"properties":{
		"query":{"type":"string","minLength":1,"maxLength":200,"pattern":"^[^<>&]+$","description":"a <b> & c"},
		"kind":{"type":"string","enum":["issue","pull"],"default":"issue"},
		"since":{"type":["string","null"],"format":"date-time"},
		"mode":{"const":"strict"},
		"page":{"type":"integer","minimum":1,"maximum":100},
		"owner":{"anyOf":[{"type":"string"},{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}]},
		"filters":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/filter"}},
		"properties":{"type":"string","description":"a property of that name"}},
	"$defs":{"filter":{"type":"object","required":["field"],"properties":{"field":{"type":"string"},"not":{"$ref":"#/$defs/text","description":"what it is not"}}},
		"text":{"type":"string","description":"a text"}}}`

// inPlace is the same without references.
const inPlace = `{"type":"object","additionalProperties":false,"required":["query","filters"],
	"properties":{
		"query":{"type":"string","minLength":1,"maxLength":200,"pattern":"^[^<>&]+$","description":"a <b> & c"},
		"kind":{"type":"string","enum":["issue","pull"],"default":"issue"},
		"since":{"type":["string","null"],"format":"date-time"},
		"mode":{"const":"strict"},
		"page":{"type":"integer","minimum":1,"maximum":100},
		"owner":{"anyOf":[{"type":"string"},{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}]},
		"filters":{"type":"array","minItems":1,"items":{"type":"object","required":["field"],"properties":{"field":{"type":"string"},
			"not":{"type":"string","description":"what it is not"}}}},
		"properties":{"type":"string","description":"a property of that name"}}}`

// offering puts a client's tool with that schema into a call.
func offering(schema string) func(*fantasy.Call) {
	return func(call *fantasy.Call) {
		client := []v1beta1.ClientTool{{Name: "search_all", Description: "Searches.",
			InputSchema: &runtime.RawExtension{Raw: []byte(schema)}}}
		for _, tool := range tools.OfClient(&v1beta1.ChatTools{Client: client}) {
			call.Tools = append(call.Tools, fantasy.FunctionTool{Name: tool.Name, Description: tool.Description,
				InputSchema: tool.InputSchema})
		}
	}
}

// schemaIn is the schema of the one tool in a request, wherever the protocol has it.
func schemaIn(t *testing.T, body string) any {
	t.Helper()
	var sent struct {
		Tools []map[string]any `json:"tools"`
	}
	check.OK(t, json.Unmarshal([]byte(body), &sent))
	tool := sent.Tools[0]
	if declared, ok := tool["functionDeclarations"].([]any); ok {
		tool = declared[0].(map[string]any)
	}
	if function, ok := tool["function"].(map[string]any); ok {
		tool = function
	}
	check.Equal(t, "the tool is offered", []any{"search_all", "Searches."}, []any{tool["name"], tool["description"]})
	for _, name := range []string{"input_schema", "parameters", "parametersJsonSchema"} {
		if schema, ok := tool[name]; ok {
			return schema
		}
	}
	return nil
}

func TestToolSchemaReachesEveryProviderWhole(t *testing.T) {
	for name, spec := range providertest.Specs {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(`{}`)}
			got, _ := server.Ask(t, spec, offering(foreign))
			text := foreign
			if name == "google" {
				text = inPlace
			}
			var want any
			check.OK(t, json.Unmarshal([]byte(text), &want))
			check.Equal(t, "the schema", want, schemaIn(t, server.Sent[0]))
			check.Equal(t, "warnings", nil, got.Warnings)
		})
	}
}

func TestRefusedPartsOfASchemaAreToldInstead(t *testing.T) {
	const either = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`
	for _, name := range []string{"openai", "openai responses", "azure", "anthropic", "bedrock"} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(`{}`)}
			got, _ := server.Ask(t, providertest.Specs[name], offering(either))
			schema, _ := schemaIn(t, server.Sent[0]).(map[string]any)
			check.Equal(t, "anyOf, properties", []any{false, true}, []any{schema["anyOf"] != nil, schema["properties"] != nil})
			check.Equal(t, "warnings", []string{
				"inputSchema was left out: of tool search_all the provider does not take anyOf at the top"}, got.Warnings)
		})
	}
}

func TestToolsOfTheConfigurationsOwnBodyGoFirst(t *testing.T) {
	spec := providertest.Specs["anthropic"]
	spec.ProviderOptions = options(
		`{"anthropic":{"extraBody":{"tools":[{"type":"web_search_20250305","name":"web_search"}]}}}`)
	server := &providertest.Scripted{Replies: providertest.Events(`{}`)}
	_, _ = server.Ask(t, spec, offering(foreign))
	check.Contains(t, server.Sent[0], `"tools":[{"type":"web_search_20250305","name":"web_search"}]`)
}

func TestSchemasAreWholeBesideProviderTools(t *testing.T) {
	for _, name := range []string{"anthropic", "openai responses"} {
		spec, server := providertest.Specs[name], &providertest.Scripted{Replies: providertest.Events(`{}`)}
		_, _ = server.Ask(t, spec, func(call *fantasy.Call) {
			own, _ := provider.OwnTools(&spec,
				&v1beta1.ChatTools{Provider: []v1beta1.ProviderTool{v1beta1.ProviderWebSearch}})
			call.Tools = own
			offering(foreign)(call)
		})
		var sent struct{ Tools []map[string]any }
		if err := json.Unmarshal([]byte(server.Sent[0]), &sent); err != nil || len(sent.Tools) != 2 ||
			!strings.HasPrefix(sent.Tools[0]["type"].(string), "web_search") {
			t.Fatalf("%s: tools %v, %v", name, sent.Tools, err)
		}
		one, _ := json.Marshal(map[string]any{"tools": sent.Tools[1:]})
		var want any
		check.OK(t, json.Unmarshal([]byte(foreign), &want))
		check.Equal(t, name, want, schemaIn(t, string(one)))
	}
}

// answering asks for an answer by the schema.
func answering(schema map[string]any) func(*fantasy.Call) {
	return func(call *fantasy.Call) {
		call.ProviderOptions = wire.Settings{Output: &wire.Output{Name: "answer", Schema: schema}}.With()
	}
}

func TestLargeNumbersOfSchemasReachEveryProvider(t *testing.T) {
	const large = `"maximum":9007199254740993`
	text := `{"type":"object","properties":{"n":{"type":"integer",` + large + `}}}`
	_, output, err := jsonschema.CompileOutput([]byte(text))
	check.OK(t, err)
	for name, spec := range providertest.Specs {
		for of, ask := range map[string]func(*fantasy.Call){
			"a tool":              offering(text),
			"the reply":           answering(output),
			"the reply by a tool": answering(output),
		} {
			if spec.StructuredOutput = v1beta1.StructuredOutputNative; of == "the reply by a tool" {
				spec.StructuredOutput = v1beta1.StructuredOutputTool
			}
			t.Run(name+" "+of, func(t *testing.T) {
				server := &providertest.Scripted{Replies: providertest.Events(`{}`)}
				_, _ = server.Ask(t, spec, ask)
				check.Contains(t, server.Sent[0], large)
			})
		}
	}
}
