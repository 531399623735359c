// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

type object = map[string]any

// sent is the body of a request of the configuration, and the warnings about it.
func sent(t *testing.T, spec v1beta1.ChatModelConfigSpec,
	change func(*fantasy.Call, *wire.Settings)) (object, []string) {
	t.Helper()
	server := &providertest.Scripted{Replies: providertest.Events(providertest.Chunk(`{"content":"Hi"}`, `"stop"`))}
	got, err := server.Ask(t, spec, func(call *fantasy.Call) {
		change(call, &call.ProviderOptions[wire.Key].(*finish.Option[wire.Settings]).Value)
	})
	var body object
	if err != nil || json.Unmarshal([]byte(server.Sent[0]), &body) != nil {
		t.Fatalf("sent %s: %v", server.Sent, err)
	}
	return body, got.Warnings
}

func TestSettingsOfACallReachTheWire(t *testing.T) {
	tool := fantasy.FunctionTool{Name: "f", InputSchema: object{"type": "object", "properties": object{}}}
	schema := object{"type": "object"}
	for _, from := range []string{"openai", "azure", "openai-compatible", "openrouter", "vercel"} {
		spec := providertest.Specs[from]
		spec.Model = "gpt-4o"
		for name, c := range map[string]struct {
			change func(*fantasy.Call, *wire.Settings)
			want   object
		}{
			"a schema": {func(_ *fantasy.Call, s *wire.Settings) { s.Output = &wire.Output{Name: "a", Schema: schema} },
				object{"response_format": object{"type": "json_schema", "json_schema": object{"name": "a", "schema": schema,
					"strict": false}}}},
			"stop": {func(_ *fantasy.Call, s *wire.Settings) { s.Stop = []string{"a", "b"} },
				object{"stop": []any{"a", "b"}}},
			"a cache": {func(_ *fantasy.Call, s *wire.Settings) { s.CacheKey = "chat-1" },
				object{"prompt_cache_key": "chat-1"}},
			"no tool": {func(call *fantasy.Call, _ *wire.Settings) {
				call.Tools, call.ToolChoice = []fantasy.Tool{tool}, new(fantasy.ToolChoiceNone)
			}, object{"tool_choice": "none"}},
			"some tool": {func(call *fantasy.Call, _ *wire.Settings) {
				call.Tools, call.ToolChoice = []fantasy.Tool{tool}, new(fantasy.ToolChoiceRequired)
			}, object{"tool_choice": "required"}},
			"that tool": {func(call *fantasy.Call, _ *wire.Settings) {
				call.Tools, call.ToolChoice = []fantasy.Tool{tool}, new(fantasy.SpecificToolChoice("f"))
			}, object{"tool_choice": object{"type": "function", "function": object{"name": "f"}}}},
			"a choice of none": {func(call *fantasy.Call, _ *wire.Settings) {
				call.ToolChoice = new(fantasy.ToolChoiceRequired)
			}, object{"tool_choice": nil}},
		} {
			t.Run(from+", "+name, func(t *testing.T) {
				body, warnings := sent(t, spec, c.change)
				for field, want := range c.want {
					check.Equal(t, "body, warnings", []any{want, 0}, []any{body[field], len(warnings)})
				}
			})
		}
	}
}

func TestModelsThatReasonAreToldNoStop(t *testing.T) {
	stop := func(_ *fantasy.Call, s *wire.Settings) { s.Stop = []string{"a"} }
	body, warnings := sent(t, providertest.Specs["openai"], stop)
	check.Equal(t, "stop, warnings", []any{nil, []string{"stop was left out: it is not supported for reasoning models"}},
		[]any{body["stop"], warnings})
	spec := providertest.Specs["openai-compatible"]
	spec.Model = "gpt-oss-20b"
	body, warnings = sent(t, spec, func(call *fantasy.Call, s *wire.Settings) {
		stop(call, s)
		call.Temperature, call.MaxOutputTokens = new(0.5), new(int64(100))
	})
	if body["stop"] == nil || body["temperature"] == nil || body["max_tokens"] == nil || len(warnings) > 0 {
		t.Errorf("a server for gpt-oss is sent %v, warnings %q", body, warnings)
	}
}

func TestExtraBodyPrecedesAllElseUnchanged(t *testing.T) {
	spec := providertest.Specs["openai-compatible"]
	spec.TopK = new(int64(40))
	spec.ProviderOptions = &v1beta1.ProviderOptions{OpenAICompatible: &v1beta1.OpenAICompatibleOptions{User: "u",
		ExtraBody: &runtime.RawExtension{Raw: []byte(`{"seed":12345678901234567890,"top_k":5,"user":null,"stream":false}`)}}}
	server := &providertest.Scripted{Replies: providertest.Events(providertest.Chunk(`{"content":"Hi"}`, `"stop"`))}
	if _, err := server.Ask(t, spec, nil); err != nil {
		t.Fatal(err)
	}
	check.Contains(t, server.Sent[0], `"seed":12345678901234567890`, `"top_k":5`, `"user":null`, `"stream":true`)
}

func TestParallelCallsAreNotToldOfWithoutTools(t *testing.T) {
	spec := providertest.Specs["openai"]
	spec.ProviderOptions = &v1beta1.ProviderOptions{OpenAI: &v1beta1.OpenAIOptions{ParallelToolCalls: new(false)}}
	body, _ := sent(t, spec, func(*fantasy.Call, *wire.Settings) {})
	check.Equal(t, "parallel_tool_calls", nil, body["parallel_tool_calls"])
}

// TestWhatComesWithAReplyGoesBack: reasoning in the forms of the gateways, and the signature of a call of Google's.
func TestWhatComesWithAReplyGoesBack(t *testing.T) {
	call := `"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`
	for name, c := range map[string]struct {
		deltas    []string
		field     string
		reasoning string
		want      string
	}{
		"a signature behind a call": {[]string{
			`{"reasoning":"H","reasoning_details":[{"type":"reasoning.text","text":"H","format":"anthropic-claude-v1","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"m","signature":null,"format":"anthropic-claude-v1","index":0}]}`,
			`{"content":"So.",` + call + `}`,
			`{"reasoning_details":[{"type":"reasoning.text","signature":"s","format":"anthropic-claude-v1","index":0}]}`,
		}, "reasoning_details", "Hm",
			`[{"type":"reasoning.text","text":"Hm","signature":"s","format":"anthropic-claude-v1","index":0}]`},
		"summaries and what is sealed": {[]string{
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"A","format":"openai-responses-v1","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"B","format":"openai-responses-v1","index":1}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"d","id":"rs","format":"openai-responses-v1","index":0}]}`,
			`{` + call + `}`,
		}, "reasoning_details", "A|B", `[{"type":"reasoning.summary","summary":"A","format":"openai-responses-v1","index":0},` +
			`{"type":"reasoning.summary","summary":"B","format":"openai-responses-v1","index":1},` +
			`{"type":"reasoning.encrypted","data":"d","id":"rs","format":"openai-responses-v1","index":0}]`},
		"two thoughts": {[]string{
			`{"reasoning_details":[{"type":"reasoning.text","text":"A","signature":"s","format":"anthropic-claude-v1","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"B","signature":"t","format":"anthropic-claude-v1","index":0}],` +
				call + `}`,
		}, "reasoning_details", "A|B",
			`[{"type":"reasoning.text","text":"A","signature":"s","format":"anthropic-claude-v1","index":0},` +
				`{"type":"reasoning.text","text":"B","signature":"t","format":"anthropic-claude-v1","index":0}]`},
		"a signature of a call": {[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},` +
			`"extra_content":{"google":{"thought_signature":"s"}}}]}`}, "tool_calls", "",
			`[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},` +
				`"extra_content":{"google":{"thought_signature":"s"}}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			var events []string
			for _, delta := range c.deltas {
				events = append(events, providertest.Chunk(delta, "null"))
			}
			spec := providertest.Specs["openrouter"]
			spec.Model = "anthropic/claude-sonnet-4.5"
			server := &providertest.Scripted{Replies: providertest.Events(append(events,
				providertest.Chunk("{}", `"tool_calls"`))...)}
			got, err := server.Ask(t, spec, nil)
			var thoughts []string
			for _, part := range got.Parts {
				if part.Type == v1beta1.PartReasoning && *part.Text != "" {
					thoughts = append(thoughts, *part.Text)
				}
			}
			said := strings.Join(thoughts, "|")
			check.Equal(t, "reasoning", []any{nil, c.reasoning}, []any{err, said})
			back := sentBack(t, spec, got.Parts)
			var want any
			check.OK(t, json.Unmarshal([]byte(c.want), &want))
			check.Equal(t, "what is sent", want, back[c.field])
		})
	}
}

// sentBack is the message of a reply in the next request.
func sentBack(t *testing.T, spec v1beta1.ChatModelConfigSpec, parts []v1beta1.MessagePart) object {
	t.Helper()
	user, reply := v1beta1.ChatMessage{}, v1beta1.ChatMessage{}
	user.Spec.Role, user.Spec.Content = v1beta1.RoleUser, "q"
	reply.Spec.Role, reply.Spec.Parts = v1beta1.RoleAssistant, parts
	body, _ := sent(t, spec, func(call *fantasy.Call, _ *wire.Settings) {
		call.Prompt = prompt.Build(prompt.Input{History: []v1beta1.ChatMessage{user, reply},
			Dialect: provider.DialectOf(&spec)})
	})
	return body["messages"].([]any)[1].(object)
}

// Groq and Cerebras refuse the field that most servers have. DeepSeek and Kimi refuse calls without it.
func TestReasoningGoesBackInItsField(t *testing.T) {
	call := `"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`
	for name, c := range map[string]struct {
		base, delta string
		want        object
	}{
		"reasoning":         {"http://model.example/v1", `{"reasoning":"Hm"}`, object{"reasoning": "Hm"}},
		"reasoning_content": {"http://model.example/v1", `{"reasoning_content":"Hm"}`, object{"reasoning_content": "Hm"}},
		"both": {"http://model.example/v1", `{"reasoning":"Hm","reasoning_content":"Hm"}`,
			object{"reasoning_content": "Hm"}},
		"none":             {"http://model.example/v1", `{}`, object{}},
		"none of DeepSeek": {"https://api.deepseek.com/v1", `{}`, object{"reasoning_content": ""}},
		"none of Kimi":     {"https://api.moonshot.ai/v1", `{}`, object{"reasoning_content": " "}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := providertest.Specs["openai-compatible"]
			spec.BaseURL = c.base
			server := &providertest.Scripted{Replies: providertest.Events(providertest.Chunk(c.delta, "null"),
				providertest.Chunk(`{`+call+`}`, `"tool_calls"`))}
			got, err := server.Ask(t, spec, nil)
			check.OK(t, err)
			back := sentBack(t, spec, got.Parts)
			fields := object{}
			for _, field := range []string{"reasoning", "reasoning_content"} {
				if value, has := back[field]; has {
					fields[field] = value
				}
			}
			check.Equal(t, "fields", c.want, fields)
		})
	}
}

func TestTheIDOfAReplyIsKept(t *testing.T) {
	spec := providertest.Specs["vercel"]
	server := &providertest.Scripted{Replies: providertest.Events(providertest.Chunk(`{"content":"Hi"}`, `"stop"`))}
	model, err := provider.New(&spec, providertest.Key, &http.Client{Transport: server})
	check.OK(t, err)
	stream, err := model.Stream(t.Context(), fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("Hello?")}})
	check.OK(t, err)
	var last finish.Last
	for part := range stream {
		last = finish.LastOf(&part)
	}
	check.Equal(t, "the id of the reply", "1", last.ResponseID)
}
