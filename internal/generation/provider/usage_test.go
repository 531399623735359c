// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/testing/providertest"
)

// The streams that tell of usage, as the providers send them. The call read 100 tokens, 40 of them from the cache, and
// produced 50, 20 of them reasoning.
const (
	chatUsage = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}],"usage":null}

data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":20}}}

data: [DONE]

`
	// apartUsage counts the reasoning beside the completion, as xAI does.
	apartUsage = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":20}}}

data: [DONE]

`
	responsesUsage = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}

event: response.completed
data: {"type":"response.completed","sequence_number":1,"response":{"id":"r","object":"response","created_at":1,"status":"completed","model":"m","output":[],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":150}}}

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

func TestUsageMeansTheSameForEveryProvider(t *testing.T) {
	same := v1alpha1.TokenUsage{InputTokens: 60, CacheReadTokens: 40, OutputTokens: 50, ReasoningTokens: 20,
		TotalTokens: 150}
	for _, c := range []struct {
		protocol providertest.Protocol
		stream   string
		want     v1alpha1.TokenUsage
	}{
		{providertest.Chat, chatUsage, same},
		{providertest.Compatible, chatUsage, same},
		{providertest.Compatible, apartUsage, same},
		{providertest.Compatible, silentUsage, v1alpha1.TokenUsage{}},
		{providertest.Protocol{Provider: v1alpha1.ProviderAzure, Transport: v1alpha1.TransportChatCompletions}, chatUsage,
			same},
		{providertest.Protocol{Provider: v1alpha1.ProviderOpenRouter}, chatUsage, same},
		{providertest.Protocol{Provider: v1alpha1.ProviderVercel}, chatUsage, same},
		{providertest.Responses, responsesUsage, same},
		{providertest.Protocol{Provider: v1alpha1.ProviderAzure, Transport: v1alpha1.TransportResponses}, responsesUsage,
			same},
		{providertest.Claude, claudeUsage, v1alpha1.TokenUsage{InputTokens: 60, CacheReadTokens: 40, CacheWriteTokens: 5,
			OutputTokens: 50,
			TotalTokens:  155}},
		{providertest.Gemini, geminiUsage, same},
	} {
		t.Run(fmt.Sprint(c.protocol), func(t *testing.T) {
			if got := usageOver(t, c.protocol, c.stream); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestGeminisCountsAreReadHoweverTheStreamIsCut(t *testing.T) {
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
		if got := usageAt(t, providertest.Gemini, server.URL); got.OutputTokens != 50 || got.TotalTokens != 150 {
			t.Errorf("in pieces of %d: %+v", size, got)
		}
		server.Close()
	}
}

// usageOver is the usage of a call that is answered with the stream.
func usageOver(t *testing.T, p providertest.Protocol, stream string) v1alpha1.TokenUsage {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream) // The test fails below if this does.
	}))
	defer server.Close()
	return usageAt(t, p, server.URL)
}

func usageAt(t *testing.T, p providertest.Protocol, address string) v1alpha1.TokenUsage {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	model, err := provider.New(t.Context(), p.Spec("https://models.example.com"), providertest.Key,
		&http.Client{Transport: redirect{to}})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := model.Stream(t.Context(), fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("Hello?")}})
	if err != nil {
		t.Fatal(err)
	}
	reply := collect.NewAccumulator(p.Provider, 1, nil)
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			t.Fatal(part.Error)
		}
		reply.Add(&part)
	}
	return reply.Finish().Usage
}

// redirect sends every request to one server, whatever it was for: some providers have a fixed address.
type redirect struct{ to *url.URL }

// RoundTrip implements http.RoundTripper.
func (r redirect) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(request)
}
