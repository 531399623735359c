// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// listing is a server whose tools are defined by that JSON.
func listing(tools ...string) http.Handler {
	return page(func() any { return json.RawMessage(`{"tools":[` + strings.Join(tools, ",") + `]}`) })
}

func TestInvalidToolDefinitionDoesNotAffectOthers(t *testing.T) {
	const good, object = `{"name":"good","inputSchema":{"type":"object"}}`, `,"inputSchema":{"type":"object"}}`
	for name, c := range map[string]struct{ definition, words string }{
		"its description is a number": {`{"name":"bad","description":7` + object, `"bad" (its description is of the wrong type: number)`},
		"its annotations are a list":  {`{"name":"bad","annotations":[]` + object, `"bad" (its annotations is of the wrong type: array)`},
		"its hint is a text":          {`{"name":"bad","annotations":{"readOnlyHint":"yes"}` + object, `"bad" (its annotations.readOnlyHint is of the wrong type: string)`},
		"its schema is null":          {`{"name":"bad","inputSchema":null}`, `"bad" (the schema of its arguments is no object)`},
		"its schema is a text":        {`{"name":"bad","inputSchema":"object"}`, `"bad" (the schema of its arguments is no object)`},
		"its properties are a list": {`{"name":"bad","inputSchema":{"type":"object","properties":[]}}`,
			`"bad" (its arguments: invalid JSON Schema: /properties: got array, want object)`},
		"its property is required": {`{"name":"bad","inputSchema":{"properties":{"a":{"required":true}}}}`,
			`"bad" (its arguments: invalid JSON Schema: /properties/a/required: got boolean, want array)`},
		"it refers to nothing": {`{"name":"bad","inputSchema":{"properties":{"a":{"$ref":"#/$defs/b"}}}}`,
			`"bad" (its arguments: invalid JSON Schema: json-pointer in "#/$defs/b" not found)`},
		"its name is a number": {`{"name":7` + object, `(its name is of the wrong type: number)`},
		"it has no name":       {`{"description":"a"` + object, `(it has no name)`},
		"it is a text":         {`"bad"`, `(it is not an object)`},
	} {
		t.Run(name, func(t *testing.T) {
			servers, _ := newServers(t, nil)
			o := offer(t, servers, serve(t, listing(c.definition, good)))
			if got := names(o); !slices.Equal(got, []string{"s__good"}) || len(o.Unavailable()) > 0 {
				t.Fatalf("%v are offered: %v", got, o.Unavailable())
			}
			w := o.Warnings()
			if len(w) != 1 || w[0].Server != "s" || !strings.Contains(w[0].Words, c.words) {
				t.Errorf("the warnings are %v", w)
			}
		})
	}
}

func TestInvalidUnusedDefinitionFieldsAreIgnored(t *testing.T) {
	servers, _ := newServers(t, nil)
	o := offer(t, servers, serve(t, listing(`{"name":"t","title":7,"icons":"none","_meta":[],"execution":1,`+
		`"annotations":{"title":7,"readOnlyHint":true},"inputSchema":{"type":"object"}}`)))
	if len(o.Tools()) != 1 || len(o.Warnings()) > 0 {
		t.Errorf("%v are offered: %v, %v", names(o), o.Unavailable(), o.Warnings())
	}
}

func TestLargeIntegersOfSchemasReachProvidersExactly(t *testing.T) {
	servers, _ := newServers(t, nil)
	o := offer(t, servers, serve(t, listing(`{"name":"t","inputSchema":{"type":"object","properties":{`+
		`"id":{"type":"integer","maximum":9007199254740993}}}}`)))
	for name, spec := range providertest.Specs {
		t.Run(name, func(t *testing.T) {
			model := &providertest.Scripted{Replies: providertest.Events(`{}`)}
			_, _ = model.Ask(t, spec, func(call *fantasy.Call) {
				call.Tools = []fantasy.Tool{fantasy.FunctionTool{Name: "t", InputSchema: o.Tools()[0].Definition().InputSchema}}
			})
			if !strings.Contains(model.Sent[0], `"maximum":9007199254740993`) {
				t.Errorf("sent %s", model.Sent[0])
			}
		})
	}
}

func pinning(tools ...v1beta1.MCPTool) v1beta1.ChatMessage {
	return v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{
		Generation: &v1beta1.MessageGeneration{MCP: &v1beta1.MCPAccount{Pinned: tools}},
	}}
}

func TestLaterPinReplacesEarlierPin(t *testing.T) {
	got := mcp.Pinned([]v1beta1.ChatMessage{
		{}, pinning(v1beta1.MCPTool{Name: "s__a", Hash: "1"}, v1beta1.MCPTool{Name: "s__b", Hash: "1"}), {},
		pinning(v1beta1.MCPTool{Name: "s__a", Hash: "2"}),
	})
	check.Equal(t, "result", map[string]string{"s__a": "2", "s__b": "1"}, got)
}

func TestOnlyNewlyOfferedToolsArePinned(t *testing.T) {
	offered := map[string]string{"s__c": "3", "s__a": "1", "s__b": "changed"}
	got := mcp.Unpinned(offered, map[string]string{"s__b": "2"})
	check.Equal(t, "result", []v1beta1.MCPTool{{Name: "s__a", Hash: "1"}, {Name: "s__c", Hash: "3"}}, got)
}

func TestApprovedCallPinsChangedTool(t *testing.T) {
	reply := &v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{
		Generation: &v1beta1.MessageGeneration{MCP: &v1beta1.MCPAccount{Changed: []v1beta1.MCPTool{
			{Name: "s__a", Hash: "2"}, {Name: "s__b", Hash: "2"},
		}}},
	}}
	changed := func(name string) v1beta1.ToolCall {
		return v1beta1.ToolCall{Name: name, RequiresAction: v1beta1.RequiresApproval,
			ApprovalCause: v1beta1.ApprovalToolChanged}
	}
	a, b := v1beta1.MCPTool{Name: "s__a", Hash: "2"}, v1beta1.MCPTool{Name: "s__b", Hash: "2"}
	for name, c := range map[string]struct {
		run  []v1beta1.ToolCall
		want []v1beta1.MCPTool
	}{
		"both were approved":             {[]v1beta1.ToolCall{changed("s__a"), changed("s__b")}, []v1beta1.MCPTool{a, b}},
		"one was denied":                 {[]v1beta1.ToolCall{changed("s__b")}, []v1beta1.MCPTool{b}},
		"another one needed no approval": {[]v1beta1.ToolCall{{Name: "s__a"}}, []v1beta1.MCPTool{}},
		"none is run":                    {nil, []v1beta1.MCPTool{}},
	} {
		check.Equal(t, name, c.want, mcp.Approved(reply, c.run))
	}
}
