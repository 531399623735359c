// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// offer puts a tool of the provider into a call.
func offer(name string, args map[string]any) func(*fantasy.Call) {
	return func(call *fantasy.Call) {
		call.Tools = []fantasy.Tool{fantasy.ProviderDefinedTool{ID: name, Name: name, Args: args}}
	}
}

func TestSettingsOfACallReachTheWire(t *testing.T) {
	f := fantasy.FunctionTool{Name: "f", InputSchema: map[string]any{"type": "object"}}
	settings := func(call *fantasy.Call) *wire.Settings {
		return &call.ProviderOptions[wire.Key].(*finish.Option[wire.Settings]).Value
	}
	choose := func(choice fantasy.ToolChoice) func(*fantasy.Call) {
		return func(call *fantasy.Call) { call.Tools, call.ToolChoice = []fantasy.Tool{f}, &choice }
	}
	for name, c := range map[string]struct {
		change func(*fantasy.Call)
		field  string
		want   string
		warns  string
	}{
		"a schema": {func(call *fantasy.Call) {
			settings(call).Output = &wire.Output{Name: "title", Schema: map[string]any{"type": "object"}}
		}, "text", `{"format":{"type":"json_schema","name":"title","schema":{"type":"object"},"strict":false}}`, ""},
		"a cache": {func(call *fantasy.Call) { settings(call).CacheKey = "chat-1" }, "prompt_cache_key", `"chat-1"`, ""},
		"a cache of the options": {func(call *fantasy.Call) {
			settings(call).CacheKey = "chat-1"
			settings(call).Provider.OpenAIResponses = &v1beta1.OpenAIResponsesOptions{PromptCacheKey: "mine"}
		}, "prompt_cache_key", `"mine"`, ""},
		"texts to stop at": {func(call *fantasy.Call) { settings(call).Stop = []string{"\n"} }, "stop", "null",
			"stop was left out: the provider does not take it"},
		"no tool":  {choose(fantasy.ToolChoiceNone), "tool_choice", `"none"`, ""},
		"a tool":   {choose(fantasy.ToolChoiceRequired), "tool_choice", `"required"`, ""},
		"one tool": {choose("f"), "tool_choice", `{"type":"function","name":"f"}`, ""},
		"a search": {offer(wire.WebSearch, map[string]any{wire.AllowedDomains: []string{"a.example"}, wire.City: "Berlin",
			wire.Country: "DE", wire.BlockedDomains: []string{"b.example"}}), "tools", `[{"type":"web_search","filters":{"allowed_domains":["a.example"]},` +
			`"user_location":{"type":"approximate","city":"Berlin","country":"DE"}}]`,
			"blockedDomains was left out: the provider does not take it"},
		"a program":  {offer(wire.CodeExecution, nil), "tools", `[{"type":"code_interpreter","container":{"type":"auto"}}]`, ""},
		"its output": {offer(wire.CodeExecution, nil), "include", `["code_interpreter_call.outputs"]`, ""},
		"a file of a tool": {func(call *fantasy.Call) {
			call.Prompt = fantasy.Prompt{{Role: fantasy.MessageRoleTool, Content: []fantasy.MessagePart{
				fantasy.ToolResultPart{ToolCallID: "a", Output: fantasy.ToolResultOutputContentMedia{Data: "iVBO",
					MediaType: "image/png", Text: "See."}}}}}
		}, "input", `[{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"See."},` +
			`{"type":"input_image","image_url":"data:image/png;base64,iVBO"}]}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(responsesReply)}
			got, err := server.Ask(t, providertest.Specs["openai responses"], c.change)
			var sent map[string]any
			if err != nil || json.Unmarshal([]byte(server.Sent[0]), &sent) != nil {
				t.Fatalf("sent %q: %v", server.Sent, err)
			}
			var want any
			check.OK(t, json.Unmarshal([]byte(c.want), &want))
			check.Equal(t, "sent, warnings", []any{want, c.warns}, []any{sent[c.field], strings.Join(got.Warnings, ", ")})
		})
	}
}

func TestAzureIsAskedForItsAPIVersion(t *testing.T) {
	var asked *http.Request
	spec := providertest.Specs["azure"]
	spec.Transport, spec.APIVersion = v1beta1.TransportResponses, "preview"
	_, _ = providertest.Ask(t, spec, transport(func(r *http.Request) (*http.Response, error) {
		asked = r
		return providertest.Canned{Status: http.StatusTeapot}.RoundTrip(r)
	}))
	if asked.URL.String() != "https://my.openai.azure.com/openai/v1/responses?api-version=preview" ||
		asked.Header.Get("Api-Key") != providertest.Key || asked.Header.Get("Authorization") != "" {
		t.Errorf("asked %s with %v", asked.URL, asked.Header)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// outline is what a reply has, a line for each part.
func outline(s collect.Step) (all []string) {
	for _, part := range s.Parts {
		switch {
		case part.ToolCall != nil:
			all = append(all, "call "+part.ToolCall.Name+" "+part.ToolCall.Input)
		case part.ToolResult != nil:
			all = append(all, "result "+part.ToolResult.Name+" "+part.ToolResult.Output)
		case part.Source != nil:
			all = append(all, "source "+part.Source.URL+" "+part.Source.Title)
		default:
			all = append(all, string(part.Type)+" "+*part.Text)
		}
	}
	return all
}

const (
	searchItem = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x",` +
		`"sources":[{"type":"url","url":"https://a.example"}]}}`
	programItem = `{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":"print(1)","container_id":"c",` +
		`"outputs":[{"type":"logs","logs":"1"},{"type":"image","url":"https://b.example/i.png"}]}`
	thoughtItem = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a"},` +
		`{"type":"summary_text","text":"b"}],"encrypted_content":"+/=="}`
	messageItem = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"final_answer","content":[` +
		`{"type":"output_text","text":"Hi","annotations":[{"type":"url_citation","url":"https://c.example","title":"C"}]}]}`
	unknownItem = `{"id":"u_1","type":"something_new","content":7}`
)

func TestItemsAreReadFromEventsAndDocuments(t *testing.T) {
	items := []string{thoughtItem, searchItem, programItem, unknownItem, messageItem}
	var events []string
	for i, item := range items {
		index := string(rune('0' + i))
		events = append(events, `{"type":"response.output_item.added","output_index":`+index+`,"item":`+item+`}`)
		switch item {
		case thoughtItem:
			for _, paragraph := range []string{"a", "b"} {
				at := `","item_id":"rs_1","output_index":0,"summary_index":` + string(rune(paragraph[0]-'a'+'0'))
				events = append(events, `{"type":"response.reasoning_summary_part.added`+at+`}`,
					`{"type":"response.reasoning_summary_text.delta`+at+`,"delta":"`+paragraph+`"}`)
			}
		case messageItem:
			events = append(events, `{"type":"response.output_text.delta","item_id":"msg_1","output_index":4,"delta":"Hi"}`,
				`{"type":"response.output_text.annotation.added","item_id":"msg_1","output_index":4,"annotation":`+
					`{"type":"url_citation","url":"https://c.example","title":"C"}}`)
		}
		events = append(events, `{"type":"response.output_item.done","output_index":`+index+`,"item":`+item+`}`)
	}
	whole := `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[` + strings.Join(items, ",") + `]}`
	events = append(events, `{"type":"response.completed","response":`+whole+`}`)
	want := []string{"Reasoning a\nb", `call web_search {"type":"search","query":"x","sources":[{"type":"url",` +
		`"url":"https://a.example"}]}`, "source https://a.example ", "result web_search ",
		`call code_execution {"code":"print(1)"}`, "result code_execution 1\nhttps://b.example/i.png", "Text Hi",
		"source https://c.example C"}
	spec := providertest.Specs["openai responses"]
	for name, reply := range map[string][]providertest.Reply{
		"events": providertest.Events(events...), "a document": {{Status: http.StatusOK, Body: whole}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: reply}
			got, err := server.Ask(t, spec, nil)
			check.Equal(t, "error, parts, pending calls", []any{nil, want, 0}, []any{err, outline(got), got.PendingCalls})
			for part, state := range map[int]string{
				0: `{"encrypted_content":"+/==","id":"rs_1","summary":[{"text":"a","type":"summary_text"},` +
					`{"text":"b","type":"summary_text"}],"type":"reasoning"}`,
				6: `{"phase":"final_answer"}`,
			} {
				check.Contains(t, got.Parts[part].ProviderMetadata, state)
			}
			last := lastOf(t, spec, reply)
			check.Equal(t, "the reply ends", []any{"resp_1", "completed"}, []any{last.ResponseID, last.Reason})
		})
	}
}

// lastOf is what the provider says last of a reply.
func lastOf(t *testing.T, spec v1beta1.ChatModelConfigSpec, reply []providertest.Reply) (last finish.Last) {
	t.Helper()
	model, err := provider.New(&spec, providertest.Key,
		&http.Client{Transport: &providertest.Scripted{Replies: reply}})
	check.OK(t, err)
	stream, err := model.Stream(t.Context(), fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("Hello?")}})
	check.OK(t, err)
	for part := range stream {
		last = finish.LastOf(&part)
	}
	return last
}
