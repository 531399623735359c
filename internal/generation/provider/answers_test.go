// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestErrorsOfProvidersKeepTheirReason(t *testing.T) {
	const overloaded, limited = v1beta1.ErrorOverloaded, v1beta1.ErrorRateLimited
	for name, c := range map[string]struct {
		protocol finish.Protocol
		body     string
		want     v1beta1.ErrorReason // "": any that is tried again.
	}{
		"a text":                  {finish.ChatCompletions, `data: {"error":"model is overloaded"}`, overloaded},
		"a text with a code":      {finish.ChatCompletions, `data: {"error":"no","code":429}`, limited},
		"a number":                {finish.ChatCompletions, `data: {"error":429}`, limited},
		"a list of texts":         {finish.ChatCompletions, `data: {"error":["model is overloaded"]}`, overloaded},
		"a list of objects":       {finish.ChatCompletions, `data: {"error":[{"message":"no","code":429}]}`, limited},
		"a code that is a text":   {finish.ChatCompletions, `data: {"error":{"message":"no","code":"429"}}`, limited},
		"a status":                {finish.ChatCompletions, `data: {"error":{"message":"no","status":429}}`, limited},
		"a message of other type": {finish.ChatCompletions, `data: {"error":{"message":{"a":1},"code":429}}`, limited},
		"fields of other types": {finish.ChatCompletions, `data: {"message":1,"error_type":2,"error":{"message":"no","code":429}}`,
			limited},
		"beside other fields":       {finish.ChatCompletions, `data: {"choices":"none","error":{"message":"no","code":429}}`, limited},
		"an event of that name":     {finish.ChatCompletions, "event: error\ndata: {\"message\":\"no\",\"code\":429}", limited},
		"a text in such an event":   {finish.ChatCompletions, "event: error\ndata: \"model is overloaded\"", overloaded},
		"without an error, Claude":  {finish.Messages, `data: {"type":"error","message":"Overloaded"}`, overloaded},
		"a text, Claude":            {finish.Messages, `data: {"type":"error","error":"Overloaded"}`, overloaded},
		"a text, Gemini":            {finish.Gemini, `data: {"error":"The model is overloaded"}`, overloaded},
		"odd details, Gemini":       {finish.Gemini, `data: {"error":{"code":429,"message":"no","details":"none"}}`, limited},
		"a list, Gemini":            {finish.Gemini, `data: {"error":[{"code":429,"message":"no"}]}`, limited},
		"a failed response, a text": {finish.Responses, `data: {"type":"response.failed","response":{"error":"model is overloaded"}}`, overloaded},
		"an event, Responses":       {finish.Responses, `data: {"type":"error","code":"429","message":"no"}`, limited},
		"a failed response":         {finish.Responses, `data: {"type":"response.failed","response":{"error":null}}`, ""},
		"a failed response alone":   {finish.Responses, `data: {"type":"response.failed"}`, ""},
		"an error, Responses":       {finish.Responses, `data: {"type":"error"}`, ""},
		"an error, Claude":          {finish.Messages, `data: {"type":"error"}`, ""},
		"odd candidates of Gemini":  {finish.Gemini, `data: {"candidates":{"content":"x"}}`, ""},
		"an odd part of Gemini":     {finish.Gemini, `data: {"candidates":[{"content":{"parts":[{"text":7}]},"finishReason":"STOP"}]}`, ""},
		"a document": {finish.ChatCompletions, `{"error":{"message":"You exceeded your current quota",` +
			`"type":"insufficient_quota","code":"insufficient_quota"}}`, v1beta1.ErrorUsageLimitReached},
		"a document with a text": {finish.ChatCompletions, `{"error":"model is overloaded"}`, v1beta1.ErrorOverloaded},
		"a document with a code": {finish.ChatCompletions, `{"error":{"message":"slow down","code":429}}`, v1beta1.ErrorRateLimited},
		"a document, Responses": {finish.Responses, `{"error":{"message":"no","type":"invalid_request_error","code":"model_not_found"}}`,
			v1beta1.ErrorModelNotFound},
		"a document, Claude": {finish.Messages, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			v1beta1.ErrorOverloaded},
		"a document, Gemini": {finish.Gemini, `[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}]`,
			v1beta1.ErrorRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			kind := "text/event-stream"
			final := c.want == v1beta1.ErrorUsageLimitReached || c.want == v1beta1.ErrorModelNotFound
			if strings.HasPrefix(name, "a document") {
				kind = "application/json"
			}
			_, err := askBody(t, c.protocol, kind, c.body+"\n\n")
			spec := providertest.Specs[speakers[c.protocol]]
			if err == nil {
				t.Fatal("the call succeeds")
			}
			e := fault.Classify(err, fault.Subject{Spec: &spec})
			check.Equal(t, "reason, retryable", []any{cmp.Or(c.want, e.Reason), !final}, []any{e.Reason, e.Retryable})
		})
	}
}

func TestOddFieldsDoNotEndAReply(t *testing.T) {
	for name, c := range map[string]struct {
		protocol finish.Protocol
		body     string
		want     []string
		input    int64
	}{
		"a document behind a blank line, Gemini": {finish.Gemini, "\n " + replyOf(finish.Gemini, "text", "STOP")[0], []string{"Hi"}, 5},
		"counts of Gemini that are no numbers": {finish.Gemini, `data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]},` +
			`"finishReason":"STOP","safetyRatings":"none","citationMetadata":7,"groundingMetadata":[]}],"usageMetadata":` +
			`{"promptTokenCount":5,"thoughtsTokenCount":"?","promptTokensDetails":7},"promptFeedback":"none"}`, []string{"Hi"}, 5},
		"blocks of Claude at one index": {finish.Messages, providertest.Events(claudeStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}`,
			claudeReason("tool_use"), claudeEnd)[0].Body, []string{`f {"x":1}`, "Hi"}, 5},
		"a last count of Claude that is 0": {finish.Messages, providertest.Events(claudeStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":3}}`,
			claudeEnd)[0].Body, []string{"Hi"}, 5},
		"calls of a response that only its end has": {finish.Responses, providertest.Events(
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"m","output_index":0,"delta":"Hi"}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc","output_index":1,"delta":"{\"x\":1}"}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"Hi"}]},`+
				`{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}"}],"usage":{"input_tokens":5,"output_tokens":2}}}`)[0].Body,
			[]string{"Hi", `f {"x":1}`}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := askBody(t, c.protocol, "text/event-stream", c.body+"\n\n")
			check.Equal(t, "error, parts, input tokens", []any{nil, c.want, c.input},
				[]any{err, outline(got), got.Usage.InputTokens})
		})
	}
}
