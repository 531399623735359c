// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/tools"
)

// scripted answers each request with the next of the replies, the last one again and again.
type scripted struct {
	replies []scriptedReply
	sent    []string
}

type scriptedReply struct {
	status int
	body   string
}

// RoundTrip implements http.RoundTripper.
func (c *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	reply := c.replies[min(len(c.sent), len(c.replies)-1)]
	c.sent = append(c.sent, string(body))
	kind := "text/event-stream"
	if reply.status != http.StatusOK {
		kind = "application/json"
	}
	return &http.Response{
		StatusCode: reply.status, Request: r, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(reply.body)),
	}, err
}

// ask makes a call and collects the reply as a generation pod does.
func (c *scripted) ask(t *testing.T, spec v1alpha1.ChatModelConfigSpec, change func(*fantasy.Call)) (step.Step, error) {
	t.Helper()
	model, err := provider.New(t.Context(), &spec, key, &http.Client{Transport: c})
	if err != nil {
		t.Fatal(err)
	}
	call, _, err := provider.Call(&spec, "")
	if err != nil {
		t.Fatal(err)
	}
	call.Prompt = fantasy.Prompt{fantasy.NewUserMessage("Hello?")}
	if change != nil {
		change(&call)
	}
	reply := step.NewAccumulator(spec.Provider, 3, nil)
	stream, err := model.Stream(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			return reply.Finish(), part.Error
		}
		reply.Add(&part)
	}
	return reply.Finish(), nil
}

// eventsOf is one reply with these events. Anthropic's say twice what they are.
func eventsOf(events ...string) []scriptedReply {
	var body strings.Builder
	for _, event := range events {
		var known struct {
			Type string `json:"type"`
		}
		if json.Unmarshal([]byte(event), &known) == nil && known.Type != "" {
			body.WriteString("event: " + known.Type + "\n")
		}
		body.WriteString("data: " + event + "\n\n")
	}
	return []scriptedReply{{http.StatusOK, body.String()}}
}

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
		client := []v1alpha1.ClientTool{{Name: "search_all", Description: "Searches.", InputSchema: &runtime.RawExtension{Raw: []byte(schema)}}}
		for _, tool := range tools.OfClient(&v1alpha1.ChatTools{Client: client}) {
			call.Tools = append(call.Tools, fantasy.FunctionTool{Name: tool.Name(), Description: tool.Description(), InputSchema: tool.InputSchema()})
		}
	}
}

// schemaIn is the schema of the one tool in a request, wherever the protocol has it.
func schemaIn(t *testing.T, body string) any {
	t.Helper()
	var sent struct {
		Tools []map[string]any `json:"tools"`
	}
	if err := json.Unmarshal([]byte(body), &sent); err != nil || len(sent.Tools) != 1 {
		t.Fatalf("%d tools are offered: %v", len(sent.Tools), err)
	}
	tool := sent.Tools[0]
	if declared, ok := tool["functionDeclarations"].([]any); ok {
		tool = declared[0].(map[string]any)
	}
	if function, ok := tool["function"].(map[string]any); ok {
		tool = function
	}
	if tool["name"] != "search_all" || tool["description"] != "Searches." {
		t.Errorf("the tool is offered as %v", tool)
	}
	for _, name := range []string{"input_schema", "parameters", "parametersJsonSchema"} {
		if schema, ok := tool[name]; ok {
			return schema
		}
	}
	return nil
}

var offeredBy = map[string]v1alpha1.ChatModelConfigSpec{
	"openai":            {Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5"},
	"openai responses":  {Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", Transport: v1alpha1.TransportResponses},
	"azure":             {Provider: v1alpha1.ProviderAzure, Model: "gpt-5", BaseURL: "https://my.openai.azure.com"},
	"anthropic":         {Provider: v1alpha1.ProviderAnthropic, Model: "claude-sonnet-4-5"},
	"bedrock":           {Provider: v1alpha1.ProviderBedrock, Model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", Region: "eu-central-1"},
	"google":            {Provider: v1alpha1.ProviderGoogle, Model: "gemini-2.5-flash"},
	"openai-compatible": {Provider: v1alpha1.ProviderOpenAICompatible, Model: "qwen3", BaseURL: "http://ollama.models:11434/v1"},
	"openrouter":        {Provider: v1alpha1.ProviderOpenRouter, Model: "z-ai/glm-5"},
	"vercel":            {Provider: v1alpha1.ProviderVercel, Model: "openai/gpt-5"},
}

func TestTheSchemaOfAToolReachesEveryProviderWhole(t *testing.T) {
	for name, spec := range offeredBy {
		t.Run(name, func(t *testing.T) {
			server := &scripted{replies: eventsOf(`{}`)}
			got, _ := server.ask(t, spec, offering(foreign))
			text := foreign
			if name == "google" {
				text = inPlace
			}
			var want any
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, schemaIn(t, server.sent[0])); diff != "" {
				t.Errorf("-given +sent\n%s", diff)
			}
			if len(got.Warnings) > 0 {
				t.Errorf("warnings: %v", got.Warnings)
			}
		})
	}
}

func TestWhatAProviderRefusesOfASchemaIsLeftOutAndSaid(t *testing.T) {
	const either = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`
	for _, name := range []string{"openai", "openai responses", "azure", "anthropic", "bedrock"} {
		t.Run(name, func(t *testing.T) {
			server := &scripted{replies: eventsOf(`{}`)}
			got, _ := server.ask(t, offeredBy[name], offering(either))
			if schema, _ := schemaIn(t, server.sent[0]).(map[string]any); schema["anyOf"] != nil || schema["properties"] == nil {
				t.Errorf("sent %v", schema)
			}
			if want := []string{"inputSchema was left out: of tool search_all the provider does not take anyOf at the top"}; !cmp.Equal(got.Warnings, want) {
				t.Errorf("warnings: %q", got.Warnings)
			}
		})
	}
}

func TestToolsOfTheConfigurationsOwnBodyGoFirst(t *testing.T) {
	spec := offeredBy["anthropic"]
	spec.ProviderOptions = options(`{"extra_body":{"tools":[{"type":"web_search_20250305","name":"web_search"}]}}`)
	server := &scripted{replies: eventsOf(`{}`)}
	_, _ = server.ask(t, spec, offering(foreign))
	if !strings.Contains(server.sent[0], `"tools":[{"name":"web_search","type":"web_search_20250305"}]`) {
		t.Errorf("sent %s", server.sent[0])
	}
}

func TestSchemasAreWholeBesideAToolOfTheProvidersOwn(t *testing.T) {
	for _, name := range []string{"anthropic", "openai responses"} {
		spec, server := offeredBy[name], &scripted{replies: eventsOf(`{}`)}
		_, _ = server.ask(t, spec, func(call *fantasy.Call) {
			own, _ := provider.OwnTools(&spec, []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch})
			call.Tools = own
			offering(foreign)(call)
		})
		var sent struct{ Tools []map[string]any }
		if err := json.Unmarshal([]byte(server.sent[0]), &sent); err != nil || len(sent.Tools) != 2 || !strings.HasPrefix(sent.Tools[0]["type"].(string), "web_search") {
			t.Fatalf("%s: tools %v, %v", name, sent.Tools, err)
		}
		one, _ := json.Marshal(map[string]any{"tools": sent.Tools[1:]})
		var want any
		if err := json.Unmarshal([]byte(foreign), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, schemaIn(t, string(one))); diff != "" {
			t.Errorf("%s: -given +sent\n%s", name, diff)
		}
	}
}

// chunk is an event of OpenAI's chat protocol.
func chunk(delta, finish string) string {
	return `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

func callsOf(s step.Step) (calls []string) {
	for _, part := range s.Parts {
		if call := part.ToolCall; call != nil {
			calls = append(calls, call.ID+" "+call.Name+" "+call.Input)
		}
	}
	return calls
}

func TestCallsWithOneIndexAndDifferentIDsAreDifferentCalls(t *testing.T) {
	call := func(index, id, name, arguments string) string {
		return chunk(`{"tool_calls":[{"index":`+index+`,"id":`+id+`,"type":"function","function":{"name":`+name+`,"arguments":`+arguments+`}}]}`, "null")
	}
	for name, c := range map[string]struct{ events, want []string }{
		"whole calls": {
			[]string{call("0", `"a"`, `"f"`, `"{}"`), call("0", `"b"`, `"g"`, `"{\"x\":\"<1>\"}"`), call("0", `"c"`, `"f"`, `"{}"`)},
			[]string{`a f {}`, `b g {"x":"<1>"}`, `c f {}`},
		},
		"in pieces": {
			[]string{
				call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `""`, `""`, `"1}"`), call("0", `"b"`, `"g"`, `"{\"x\""`), call("0", "null", "null", `":2}"`),
				call("1", `"c"`, `"h"`, `"{}"`),
			},
			[]string{`a f {"x":1}`, `b g {"x":2}`, `c h {}`},
		},
		"the id in each piece": {
			[]string{call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `"a"`, `"f"`, `"1}"`), call("1", `"b"`, `"f"`, `"{}"`)},
			[]string{`a f {"x":1}`, `b f {}`},
		},
		"another id in each piece": {
			[]string{call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `"z"`, `""`, `"1}"`)},
			[]string{`a f {"x":1}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &scripted{replies: eventsOf(append(c.events, chunk("{}", `"tool_calls"`), "[DONE]")...)}
			got, err := server.ask(t, offeredBy["openai-compatible"], nil)
			if err != nil || !cmp.Equal(callsOf(got), c.want) {
				t.Errorf("calls %q, %v", callsOf(got), err)
			}
		})
	}
}

func TestAReplyWithoutItsEndIsNoneAlsoBehindACall(t *testing.T) {
	call := chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "null")
	said := chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"finish_reason\": \"stop\"}"}}]}`, `""`)
	gemini := `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{"finishReason":"STOP"}}}]}}]}`
	for _, c := range []struct {
		from, name string
		events     []string
		whole      bool
	}{
		{"openai", "cut", []string{call}, false},
		{"vercel", "cut", []string{call}, false},
		{"openrouter", "cut, of itself", []string{said}, false},
		{"openai-compatible", "with a reason", []string{call, chunk("{}", `"tool_calls"`)}, true},
		// The server says itself that it has sent everything: what was paid for is kept.
		{"openai-compatible", "with the last event alone", []string{call, "[DONE]"}, true},
		{"google", "cut", []string{gemini}, false},
		{"google", "with a reason", []string{gemini, `{"candidates":[{"finishReason":"STOP"}]}`}, true},
	} {
		t.Run(c.from+", "+c.name, func(t *testing.T) {
			server := &scripted{replies: eventsOf(c.events...)}
			got, err := server.ask(t, offeredBy[c.from], nil)
			if c.whole != (err == nil) || c.whole && len(callsOf(got)) != 1 {
				t.Fatalf("calls %v, %v", callsOf(got), err)
			}
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestWhatATextOfAnthropicCitesStandsBehindIt(t *testing.T) {
	cite := func(url string) string {
		return `{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"` + url + `","title":"T","cited_text":"x","encrypted_index":"e"}}}`
	}
	server := &scripted{replies: eventsOf(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"citations":[],"type":"text","text":""}}`, cite("https://a.example.com"), `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}`,
		cite("https://b.example.com"), cite("https://a.example.com"), `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"c"}}`, `{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`, `{"type":"message_stop"}`)}
	got, err := server.ask(t, offeredBy["anthropic"], nil)
	if err != nil {
		t.Fatal(err)
	}
	var outline []string
	for _, part := range got.Parts {
		if part.Source != nil {
			outline = append(outline, part.Source.URL+" "+part.Source.Title)
		} else {
			outline = append(outline, *part.Text)
		}
	}
	if want := []string{"a", "b", "https://a.example.com T", "https://b.example.com T", "c"}; !cmp.Equal(outline, want) {
		t.Errorf("got %q", outline)
	}
}

// sealed is a turn whose reply had an encrypted reasoning.
func sealed(call *fantasy.Call) {
	secret := "sealed+/=="
	metadata := fantasy.ProviderOptions{openai.Name: &openai.ResponsesReasoningMetadata{ItemID: "rs_1", EncryptedContent: &secret, Summary: []string{"", "hm <b>"}}}
	call.Prompt = fantasy.Prompt{
		fantasy.NewUserMessage("Hello?"),
		{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{fantasy.ReasoningPart{Text: "hm", ProviderOptions: metadata}, fantasy.TextPart{Text: "Hi."}}},
		fantasy.NewUserMessage("And?"),
	}
}

const responsesReply = `{"type":"response.created","response":{"id":"r"}}

data: {"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}

data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"delta":"ok"}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}}

data: {"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`

func TestEncryptedReasoningGoesBackWhereItCameFrom(t *testing.T) {
	server := &scripted{replies: eventsOf(responsesReply)}
	if _, err := server.ask(t, offeredBy["openai responses"], sealed); err != nil {
		t.Fatal(err)
	}
	const item = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm <b>"}],"encrypted_content":"sealed+/=="},{"content":"Hi.","role":"assistant"}`
	if !strings.Contains(server.sent[0], item) || strings.Count(server.sent[0], "hm") != 1 {
		t.Errorf("sent %s", server.sent[0])
	}
}

func TestReasoningThatIsRefusedIsLeftOut(t *testing.T) {
	for name, refusal := range map[string]string{
		"it cannot be decrypted": `{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`,
		"what it led to is gone": `{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item.","type":"invalid_request_error","param":"input","code":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			server := &scripted{replies: append([]scriptedReply{{http.StatusBadRequest, refusal}}, eventsOf(responsesReply)...)}
			got, err := server.ask(t, offeredBy["openai responses"], sealed)
			if err != nil || len(got.Parts) != 1 || *got.Parts[0].Text != "ok" {
				t.Fatalf("got %+v, %v", got.Parts, err)
			}
			if len(server.sent) != 2 || strings.Contains(server.sent[1], "reasoning") {
				t.Errorf("sent %q", server.sent)
			}
		})
	}
}

func TestAnotherRefusalIsNotAskedAgainWithoutReasoning(t *testing.T) {
	refusal := `{"error":{"message":"Unsupported parameter: 'x'.","type":"invalid_request_error","param":"x","code":null}}`
	server := &scripted{replies: append([]scriptedReply{{http.StatusBadRequest, refusal}}, eventsOf(responsesReply)...)}
	if _, err := server.ask(t, offeredBy["openai responses"], sealed); err == nil || len(server.sent) != 1 {
		t.Errorf("sent %q, %v", server.sent, err)
	}
}

func TestAnotherModelsEncryptedReasoningIsNotSent(t *testing.T) {
	if a, b := prompt.Origin(v1alpha1.ProviderOpenAI, "gpt-5"), prompt.Origin(v1alpha1.ProviderOpenAI, "gpt-5-mini"); a == b {
		t.Errorf("both are of %s", a)
	}
}
