// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// chatCounts are those of a call by OpenAI's chat protocol that read 100 tokens, 40 of them from the cache.
func chatCounts(completion, reasoning, total int) string {
	return fmt.Sprintf(`{"prompt_tokens":100,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		completion, total, reasoning)
}

// chatUsage is a stream that tells them.
func chatUsage(completion, reasoning, total int) string {
	const chunk = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",`
	return chunk +
		`"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}],"usage":null}` +
		"\n\n" + chunk + `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}` + "\n\n" +
		chunk + `"choices":[],"usage":` + chatCounts(completion, reasoning, total) + "}\n\ndata: [DONE]\n\n"
}

// The streams of the other protocols that tell of usage, as the providers send them. The call read 100 tokens, 40 of
// them from the cache, and produced 50, 20 of them reasoning.
const (
	responsesUsage = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"m","output_index":0,"content_index":0,"delta":"Hi"}

event: response.completed
data: {"type":"response.completed","sequence_number":2,"response":{"id":"r","object":"response","created_at":1,"status":"completed","model":"m","output":[],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":150}}}

`
	// claudeUsage leaves the cache out of its input and does not tell of reasoning; 5 more tokens went into the cache.
	claudeUsage = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":60,"cache_creation_input_tokens":5,"cache_read_input_tokens":40,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":50}}

event: message_stop
data: {"type":"message_stop"}

`
	// geminiUsage counts so far with each chunk, the cache within the prompt, and the thoughts beside the candidates.
	geminiUsage = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"H\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":100,\"cachedContentTokenCount\":40,\"candidatesTokenCount\":10,\"thoughtsTokenCount\":20,\"totalTokenCount\":130}}\r\n\r\n" +
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"i\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":100,\"cachedContentTokenCount\":40,\"candidatesTokenCount\":20,\"thoughtsTokenCount\":20,\"totalTokenCount\":140}}\r\n\r\n" +
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"!\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":97,\"toolUsePromptTokenCount\":3,\"cachedContentTokenCount\":40,\"candidatesTokenCount\":30,\"thoughtsTokenCount\":20,\"totalTokenCount\":150}}\r\n\r\n"
	// silentUsage is of a server that does not count.
	silentUsage = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}

data: [DONE]

`
)

var (
	behindOpenRouter = providertest.Protocol{Provider: v1beta1.ProviderOpenRouter}
	behindVercel     = providertest.Protocol{Provider: v1beta1.ProviderVercel}
	azureChat        = providertest.Protocol{Provider: v1beta1.ProviderAzure,
		Transport: v1beta1.TransportChatCompletions}
	azureResponses = providertest.Protocol{Provider: v1beta1.ProviderAzure, Transport: v1beta1.TransportResponses}
)

// produced is the usage of a call that produced 50 tokens, so many of them reasoning.
func produced(reasoning int64) v1beta1.TokenUsage {
	return v1beta1.TokenUsage{InputTokens: 60, CacheReadTokens: 40, OutputTokens: 50, ReasoningTokens: reasoning,
		TotalTokens: 150}
}

func TestUsageMeansTheSameForEveryProvider(t *testing.T) {
	chatAnswer := func(completion, reasoning, total int) string {
		return `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":` +
			chatCounts(completion, reasoning, total) + `}`
	}
	geminiAnswer := func(candidates int) string {
		return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":%d,"thoughtsTokenCount":20,"totalTokenCount":150}}`,
			candidates)
	}
	for name, c := range map[string]struct {
		protocol providertest.Protocol
		model    string
		stream   string
		want     v1beta1.TokenUsage
	}{
		"OpenAI's chat":                        {providertest.Chat, "", chatUsage(50, 20, 150), produced(20)},
		"OpenAI's chat, mostly thought":        {providertest.Chat, "", chatUsage(50, 45, 150), produced(45)},
		"Azure's chat":                         {azureChat, "", chatUsage(50, 20, 150), produced(20)},
		"OpenAI's responses":                   {providertest.Responses, "", responsesUsage, produced(20)},
		"Azure's responses":                    {azureResponses, "", responsesUsage, produced(20)},
		"a server like OpenAI":                 {providertest.Compatible, "", chatUsage(50, 20, 150), produced(20)},
		"a server like OpenAI, mostly thought": {providertest.Compatible, "", chatUsage(50, 45, 150), produced(45)},
		"xAI counts the reasoning beside it":   {providertest.Compatible, "", chatUsage(30, 20, 150), produced(20)},
		"xAI, half of it thought":              {providertest.Compatible, "", chatUsage(25, 25, 150), produced(25)},
		"xAI, mostly thought":                  {providertest.Compatible, "", chatUsage(5, 45, 150), produced(45)},
		"a server whose total lacks it":        {providertest.Compatible, "", chatUsage(5, 45, 105), produced(45)},
		"a server that does not count":         {providertest.Compatible, "", silentUsage, v1beta1.TokenUsage{}},
		"OpenRouter":                           {behindOpenRouter, "", chatUsage(50, 20, 150), produced(20)},
		"OpenRouter, whose total lacks it":     {behindOpenRouter, "", chatUsage(5, 45, 105), produced(45)},
		"OpenRouter, which keeps some of it": {behindOpenRouter, "", strings.Replace(chatUsage(50, 20, 150),
			`"cached_tokens":40`, `"cached_tokens":40,"cache_write_tokens":10`, 1), v1beta1.TokenUsage{InputTokens: 50,
			CacheReadTokens: 40, CacheWriteTokens: 10, OutputTokens: 50, ReasoningTokens: 20, TotalTokens: 150}},
		"Vercel":                               {behindVercel, "openai/gpt-5", chatUsage(50, 20, 150), produced(20)},
		"Gemini at Vercel":                     {behindVercel, "google/gemini-3-pro", chatUsage(30, 20, 130), produced(20)},
		"Gemini at Vercel, half of it thought": {behindVercel, "google/gemini-3-pro", chatUsage(25, 25, 125), produced(25)},
		"Gemini at Vercel, mostly thought":     {behindVercel, "google/gemini-3-pro", chatUsage(5, 45, 105), produced(45)},
		"Claude": {providertest.Claude, "", claudeUsage, v1beta1.TokenUsage{InputTokens: 60, CacheReadTokens: 40,
			CacheWriteTokens: 5, OutputTokens: 50, TotalTokens: 155}},
		"Gemini counts the thoughts beside it": {providertest.Gemini, "", geminiUsage, produced(20)},
		"Gemini counts the thoughts within it": {providertest.Gemini, "",
			strings.ReplaceAll(geminiUsage, `"candidatesTokenCount":30`, `"candidatesTokenCount":50`), produced(20)},
		"OpenAI's chat, whole":                        {providertest.Chat, "", chatAnswer(50, 20, 150), produced(20)},
		"a server like OpenAI, mostly thought, whole": {providertest.Compatible, "", chatAnswer(50, 45, 150), produced(45)},
		"xAI counts the reasoning beside it, whole":   {providertest.Compatible, "", chatAnswer(30, 20, 150), produced(20)},
		"xAI, mostly thought, whole":                  {providertest.Compatible, "", chatAnswer(5, 45, 150), produced(45)},
		"OpenRouter, whose total lacks it, whole":     {behindOpenRouter, "", chatAnswer(5, 45, 105), produced(45)},
		"Gemini counts the thoughts beside it, whole": {providertest.Gemini, "", geminiAnswer(30), produced(20)},
		"Gemini counts the thoughts within it, whole": {providertest.Gemini, "", geminiAnswer(50), produced(20)},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "the usage", c.want, usageOver(t, c.protocol, c.model, c.stream))
		})
	}
}

func TestGeminisCountsSurviveAnyCutOfTheStream(t *testing.T) {
	for _, size := range []int{1, 7, 64, 1 << 20} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for rest := strings.TrimSuffix(geminiUsage, "\r\n"); rest != ""; {
				n := min(size, len(rest))
				_, _ = io.WriteString(w, rest[:n]) // The test fails below if this does.
				if size > 1 {
					_ = http.NewResponseController(w).Flush() // As above.
				}
				rest = rest[n:]
			}
		}))
		got := usageAt(t, providertest.Gemini, "", server.URL)
		check.Equal(t, "in pieces", []any{50, 150}, []any{got.OutputTokens, got.TotalTokens})
		server.Close()
	}
}

// usageOver is the usage of a call that is answered with the stream.
func usageOver(t *testing.T, p providertest.Protocol, name, stream string) v1beta1.TokenUsage {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.HasPrefix(stream, "{") { // It comes as a whole.
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, stream) // The test fails below if this does.
	}))
	defer server.Close()
	return usageAt(t, p, name, server.URL)
}

var question = fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("Hello?")}}

// modelAt is the model of that name, or any if that is empty, which the server answers for.
func modelAt(t *testing.T, p providertest.Protocol, name, address string) fantasy.LanguageModel {
	t.Helper()
	spec := p.Spec("https://models.example.com")
	spec.Model = cmp.Or(name, spec.Model)
	model, err := provider.New(spec, providertest.Key, providertest.Redirect(t, address))
	check.OK(t, err)
	return model
}

func usageAt(t *testing.T, p providertest.Protocol, name, address string) v1beta1.TokenUsage {
	t.Helper()
	stream, err := modelAt(t, p, name, address).Stream(t.Context(), question)
	check.OK(t, err)
	reply := collect.NewAccumulator(p.Provider, 1, nil)
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			t.Fatal(part.Error)
		}
		reply.Add(&part)
	}
	return reply.Finish().Usage
}
