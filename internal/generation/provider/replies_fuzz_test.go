// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// The fuzz tests let a server of each protocol answer with anything.
func FuzzChatCompletions(f *testing.F) { fuzzReplies(f, finish.ChatCompletions, "openrouter") }
func FuzzResponses(f *testing.F)       { fuzzReplies(f, finish.Responses, speakers[finish.Responses]) }
func FuzzMessages(f *testing.F)        { fuzzReplies(f, finish.Messages, speakers[finish.Messages]) }
func FuzzGemini(f *testing.F)          { fuzzReplies(f, finish.Gemini, speakers[finish.Gemini]) }

// oddities are answers that are unusual in every protocol.
var oddities = []string{
	"", "null", "[]", "{}", "[null]", `[{"error":1}]`, `{"error":"overloaded"}`, `{"error":["x"]}`, `{"error":429}`,
	" \n{\"error\":{\"status\":429}}", "data:\n\n", "data: null\n\n", "data: 1e999\n\n", "data: \"x\"\n\n", "data: [null]\n\n",
	"data: {\n\n", "\ufeffdata: {}\n\n", "data: {}\r\rdata: [DONE]\r\r", "event: error\ndata: x\n\n",
	"event: error\ndata: {\"message\":\"x\",\"code\":429}\n\n", "event: error\ndata: \"x\"\n\n", "data: {\"a\":\"\\ud83d\"}\n\n" +
		"data: {\"a\":\"\\ude00\"}\n\n", "data: {}\n\n{\"error\":{\"code\":503}}",
}

// oddEvents are events of each protocol that have shapes which no provider documents.
var oddEvents = map[finish.Protocol][]string{
	finish.ChatCompletions: {
		`{"choices":null}`, `{"choices":{}}`, `{"choices":[null]}`, `{"choices":[{"delta":null}]}`, `{"usage":null,"choices":[]}`,
		`{"choices":[{"delta":{"content":[{"text":1},null,"x"]}}]}`, `{"choices":[{"delta":{"content":{"text":"x"}}}]}`,
		`{"choices":[{"delta":{"tool_calls":[null,{"index":-1},{"index":1e30,"function":null},{"function":{"name":1,"arguments":{}}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":{"index":0}}}]}`, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f"}}]}}]}`,
		`{"choices":[{"delta":{"reasoning_details":[null,{},{"type":{}},{"type":"reasoning.text","index":[],"text":"a"},{"type":"reasoning.text","index":[],"text":"a"},{"type":"reasoning.text","index":0,"text":"b","format":"anthropic-claude-v1"}]}}]}`,
		`{"choices":[{"delta":{"annotations":[null,{"url_citation":null}]}}]}`, `{"choices":[{"delta":{"refusal":"no"},"finish_reason":7}]}`,
		`{"usage":{"prompt_tokens":-1,"completion_tokens":1e400,"total_tokens":"x"}}`, `{"object":"error"}`, "[DONE]",
	},
	finish.Responses: {
		`{"type":null}`, `{"type":"error"}`, `{"type":"error","error":[]}`, `{"type":"response.failed","response":null}`,
		`{"type":"response.failed","response":{"error":"x"}}`, `{"type":"response.completed"}`, `{"type":"response.completed","response":[]}`,
		`{"type":"response.output_item.added","item":null}`, `{"type":"response.output_item.done","item":{}}`,
		`{"type":"response.output_item.done","output_index":-1,"item":{"type":"function_call","arguments":{"a":1}}}`,
		`{"type":"response.output_item.done","item":{"type":"web_search_call","action":null}}`,
		`{"type":"response.output_item.done","item":{"type":"code_interpreter_call","outputs":[null]}}`,
		`{"type":"response.output_item.done","item":{"type":"reasoning","summary":[null],"encrypted_content":"x"}}`,
		`{"type":"response.output_item.done","item":{"type":"message","content":[null,{"annotations":[null]}],"phase":"x"}}`,
		`{"type":"response.output_text.annotation.added","annotation":{}}`, `{"type":"response.output_text.delta","delta":["x"],"output_index":1e30}`,
	},
	finish.Messages: {
		`{"type":null}`, `{"type":"error"}`, `{"type":"error","error":7}`, `{"type":"message_start"}`, `{"type":"message_start","message":null}`,
		`{"type":"content_block_start"}`, `{"type":"content_block_start","index":1,"content_block":{"type":"text","citations":[null]}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","input":null}}`, `{"type":"content_block_stop","index":9}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","content":{"error_code":"x"}}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"_tool_result","content":[null]}}`,
		`{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}`, `{"type":"content_block_delta","delta":null}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"x"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":null}}`,
		`{"type":"message_delta","delta":null,"usage":{"input_tokens":-1,"output_tokens":1e400}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`,
	},
	finish.Gemini: {
		`{"candidates":null}`, `{"candidates":[null]}`, `{"candidates":{}}`, `{"candidates":[{"content":null,"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[null,{},{"functionCall":null},{"functionCall":{"args":null}},{"text":1}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"executableCode":{}},{"codeExecutionResult":{}},{"toolCall":{}},{"toolResponse":{}}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"thought":true,"text":"x","thoughtSignature":"AA=="},{"thoughtSignature":"?"}]}}]}`,
		`{"candidates":[{"groundingMetadata":{"groundingChunks":[null,{"web":null}]}}]}`, `{"promptFeedback":{"blockReason":"OTHER"}}`,
		`{"promptFeedback":null,"usageMetadata":{"promptTokenCount":-1}}`, `{"usageMetadata":{"promptTokenCount":1e30}}`, `{"error":[]}`,
	},
}

// fuzzReplies checks that a stream of the protocol ends, once: with a finish or with an error.
func fuzzReplies(f *testing.F, p finish.Protocol, name string) {
	f.Helper()
	good := strings.Join(replyOf(p, "text", "stop"), "\n")
	for _, body := range append(oddities, good) {
		f.Add(body)
	}
	for _, odd := range oddEvents[p] {
		f.Add(odd)
		f.Add(providertest.Events(odd)[0].Body)
		f.Add(providertest.Events(odd, odd)[0].Body + providertest.Events(replyOf(p, "text", "stop")...)[0].Body)
	}
	spec := providertest.Specs[name]
	f.Fuzz(func(t *testing.T, body string) {
		answer := providertest.Canned{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: []byte(body)}
		model, err := provider.New(&spec, providertest.Key, &http.Client{Transport: answer})
		check.OK(t, err)
		stream, err := model.Stream(t.Context(), fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("Hello?")}})
		check.OK(t, err)
		ends, last := 0, fantasy.StreamPartType("")
		for part := range stream {
			if last = part.Type; last == fantasy.StreamPartTypeFinish || last == fantasy.StreamPartTypeError {
				ends++
			}
		}
		check.Equal(t, "ends, the last part is one", []any{1, true},
			[]any{ends, last == fantasy.StreamPartTypeFinish || last == fantasy.StreamPartTypeError})
	})
}
