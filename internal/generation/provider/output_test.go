// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// asking asks for an answer by a schema, with a tool named f and a choice of tools.
func asking(schema string, choice fantasy.ToolChoice) func(*fantasy.Call) {
	var object map[string]any
	if err := json.Unmarshal([]byte(schema), &object); err != nil {
		panic(err)
	}
	return func(call *fantasy.Call) {
		settings := wire.SettingsOf(call)
		settings.Output = &wire.Output{Name: "answer", Schema: object}
		call.ProviderOptions = settings.With()
		call.Tools = []fantasy.Tool{fantasy.FunctionTool{Name: "f", InputSchema: map[string]any{"type": "object"}}}
		if choice != "" {
			call.ToolChoice = &choice
		}
	}
}

// claudeBlocks is a reply of Claude with these blocks.
func claudeBlocks(blocks ...string) []string {
	events := []string{claudeStart}
	for _, block := range blocks {
		events = append(events, `{"type":"content_block_start","index":0,"content_block":`+block+`}`, claudeStop("0"))
	}
	return append(events, claudeReason("tool_use"), claudeEnd)
}

func TestAnswersByAToolAreItsInputAlone(t *testing.T) {
	const (
		text    = `{"type":"text","text":"Let me see."}`
		thought = `{"type":"thinking","thinking":"Hm.","signature":"s"}`
		call    = `{"type":"tool_use","id":"a","name":"f","input":{"x":1}}`
		answer  = `{"type":"tool_use","id":"b","name":"submit_answer","input":{"n":4}}`
		search  = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}`
		found   = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	)
	for name, c := range map[string]struct {
		blocks, want []string
		outcome      v1beta1.ReplyOutcome
	}{
		"an answer":                    {[]string{answer}, []string{`{"n":4}`}, v1beta1.ReplyComplete},
		"a text before":                {[]string{text, answer}, []string{`{"n":4}`}, v1beta1.ReplyComplete},
		"a text behind":                {[]string{answer, text}, []string{`{"n":4}`}, v1beta1.ReplyComplete},
		"thoughts keep their order":    {[]string{thought, text, thought, answer}, []string{"Hm.", "Hm.", `{"n":4}`}, v1beta1.ReplyComplete},
		"a search before":              {[]string{text, search, found, text, answer}, []string{`web_search {"query":"q"}`, `{"n":4}`}, v1beta1.ReplyComplete},
		"a text before another call":   {[]string{text, call}, []string{"Let me see.", `f {"x":1}`}, v1beta1.ReplyToolCalls},
		"no call":                      {[]string{thought, text}, []string{"Hm.", "Let me see."}, v1beta1.ReplyComplete},
		"an answer beside another one": {[]string{call, answer}, []string{`f {"x":1}`, `{"n":4}`}, v1beta1.ReplyToolCalls},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(claudeBlocks(c.blocks...)...)}
			spec := providertest.Specs["anthropic"]
			spec.StructuredOutput = v1beta1.StructuredOutputTool
			got, err := server.Ask(t, spec, asking(`{"type":"object"}`, ""))
			check.Equal(t, "error, parts, reply outcome", []any{nil, c.want, c.outcome},
				[]any{err, outline(got), got.ReplyOutcome})
		})
	}
}

func TestAnswersByAToolHeedTheChoice(t *testing.T) {
	for name, c := range map[string]struct {
		choice             fantasy.ToolChoice
		thinks             bool
		tools, want, wants string
	}{
		"nothing is asked":            {"", false, "f submit_answer", `"required"`, ""},
		"automatic":                   {fantasy.ToolChoiceAuto, false, "f submit_answer", `"required"`, ""},
		"some tool":                   {fantasy.ToolChoiceRequired, false, "f submit_answer", `"required"`, ""},
		"one tool":                    {"f", false, "f submit_answer", `{"function":{"name":"f"},"type":"function"}`, ""},
		"no tool":                     {fantasy.ToolChoiceNone, false, "submit_answer", `{"function":{"name":"submit_answer"},"type":"function"}`, ""},
		"while Claude thinks":         {"", true, "f submit_answer", "", "Give your final answer"},
		"no tool while Claude thinks": {fantasy.ToolChoiceNone, true, "submit_answer", "", "Give your final answer"},
		"one tool, Claude":            {"f", true, "f submit_answer", `{"name":"f","type":"tool"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec, reply := providertest.Specs["openai"], []string{providertest.Chunk(`{"content":"{}"}`, `"stop"`)}
			if c.thinks {
				spec, reply = providertest.Specs["anthropic"], claudeReply("text", `"end_turn"`)
			}
			spec.StructuredOutput = v1beta1.StructuredOutputTool
			server := &providertest.Scripted{Replies: providertest.Events(reply...)}
			_, err := server.Ask(t, spec, func(call *fantasy.Call) {
				asking(`{"type":"object"}`, c.choice)(call)
				settings := wire.SettingsOf(call)
				if c.thinks {
					settings.Effort = v1beta1.EffortHigh
				}
				call.ProviderOptions = settings.With()
			})
			check.OK(t, err)
			var sent struct {
				Tools []struct {
					Name     string
					Function struct{ Name string }
				}
				Choice json.RawMessage `json:"tool_choice"`
			}
			check.OK(t, json.Unmarshal([]byte(server.Sent[0]), &sent))
			var tools []string
			for _, tool := range sent.Tools {
				tools = append(tools, tool.Name+tool.Function.Name)
			}
			check.Equal(t, "tools, choice, told to answer", []any{c.tools, c.want, c.wants != ""}, []any{
				strings.Join(tools, " "), string(sent.Choice), strings.Contains(server.Sent[0], "Give your final answer")})
		})
	}
}

func TestClaudeIsAskedAsItTakesTheSchema(t *testing.T) {
	for schema, native := range map[string]bool{
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":["string","null"],"description":"d"}}}`:            true,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":["x",1]}}}`:     true,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array","minItems":1,"items":{"type":"string"}}}}`: true,
		`{"type":"object"}`: false,
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                                                              false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"object"}}}`:                                                 false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"integer","minimum":1}}}`:                                    false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string","maxLength":1}}}`:                                   false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array","minItems":2,"items":{}}}}`:                          false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string","format":"iri"}}}`:                                  false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"enum":[{}]}}}`:                                                     false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"anyOf":[{"type":"object"}]}}}`:                                     false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"items":{"$ref":"#/$defs/b"}}}}`: false,
	} {
		server := &providertest.Scripted{Replies: providertest.Events(claudeReply("text", `"end_turn"`)...)}
		_, err := server.Ask(t, providertest.Specs["anthropic"], asking(schema, ""))
		check.OK(t, err)
		check.Equal(t, schema, native, strings.Contains(server.Sent[0], `"output_config"`))
	}
}

func TestBedrockAnswersByATool(t *testing.T) {
	server := &providertest.Scripted{Replies: providertest.Events(`{}`)}
	_, _ = server.Ask(t, providertest.Specs["bedrock"], asking(`{"type":"object","additionalProperties":false}`, ""))
	check.Contains(t, server.Sent[0], "submit_answer")
}

func TestAllThatIsAskedAgainWorksTogether(t *testing.T) {
	refusal := func(message, code string) providertest.Reply {
		return providertest.Reply{Status: http.StatusBadRequest, Body: `{"error":{"type":"invalid_request_error","message":"` +
			message + `","code":"` + code + `"}}`}
	}
	sealed := refusal("The encrypted content could not be verified.", "invalid_encrypted_content")
	server := &providertest.Scripted{Replies: append([]providertest.Reply{sealed,
		refusal("Error while downloading https://example.com/a.png.", "invalid_image_url"), sealed}, providertest.Events(
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"a","name":"submit_answer","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"n\":4}"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"a","name":"submit_answer","arguments":"{\"n\":4}"}}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed"}}`)...)}
	spec := providertest.Specs["openai responses"]
	spec.StructuredOutput = v1beta1.StructuredOutputTool
	got, err := server.Ask(t, spec, func(call *fantasy.Call) {
		asking(`{"type":"object"}`, "")(call)
		state := wire.State{Item: []byte(`{"type":"reasoning","id":"rs_1","encrypted_content":"sealed"}`)}
		file := fantasy.FilePart{Filename: "a.png", MediaType: "image/png", ProviderOptions: fantasy.ProviderOptions{
			wire.Key: &prompt.FileURL{URL: "https://example.com/a.png"}}}
		call.Prompt = fantasy.Prompt{{Role: fantasy.MessageRoleUser, Content: []fantasy.MessagePart{file}},
			{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{
				fantasy.ReasoningPart{ProviderOptions: state.With()}, fantasy.TextPart{Text: "x"}}}, fantasy.NewUserMessage("n?")}
	})
	check.Equal(t, "error, parts, requests", []any{nil, []string{`{"n":4}`}, 4}, []any{err, outline(got), len(server.Sent)})
	for i, want := range []struct{ sealed, url bool }{{true, true}, {false, true}, {true, false}, {false, false}} {
		sent := server.Sent[i]
		check.Equal(t, "request", []any{want.sealed, want.url},
			[]any{strings.Contains(sent, `"sealed"`), strings.Contains(sent, `"image_url"`)})
		check.Contains(t, sent, "submit_answer")
	}
}
