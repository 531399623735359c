// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
)

// Specs are a configuration of each protocol, by name.
var Specs = map[string]v1beta1.ChatModelConfigSpec{
	"openai":           {Provider: v1beta1.ProviderOpenAI, Model: "gpt-5"},
	"openai responses": {Provider: v1beta1.ProviderOpenAI, Model: "gpt-5", Transport: v1beta1.TransportResponses},
	"azure":            {Provider: v1beta1.ProviderAzure, Model: "gpt-5", BaseURL: "https://my.openai.azure.com"},
	"anthropic":        {Provider: v1beta1.ProviderAnthropic, Model: "claude-sonnet-4-5"},
	"bedrock": {Provider: v1beta1.ProviderBedrock, Model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
		Region: "eu-central-1"},
	"google": {Provider: v1beta1.ProviderGoogle, Model: "gemini-2.5-flash"},
	"openai-compatible": {Provider: v1beta1.ProviderOpenAICompatible, Model: "qwen3",
		BaseURL: "http://ollama.models:11434/v1"},
	"openrouter": {Provider: v1beta1.ProviderOpenRouter, Model: "z-ai/glm-5"},
	"vercel":     {Provider: v1beta1.ProviderVercel, Model: "openai/gpt-5"},
}

// Scripted answers each request with the next of the replies, the last one again and again.
type Scripted struct {
	Replies []Reply
	// Sent are the bodies of the requests.
	Sent []string
}

// Reply is an answer over HTTP.
type Reply struct {
	Status int
	Body   string
}

// RoundTrip implements http.RoundTripper.
func (c *Scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	reply := c.Replies[min(len(c.Sent), len(c.Replies)-1)]
	c.Sent = append(c.Sent, string(body))
	kind := "text/event-stream"
	if reply.Status != http.StatusOK {
		kind = "application/json"
	}
	return &http.Response{
		StatusCode: reply.Status, Request: r, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(strings.NewReader(reply.Body)),
	}, err
}

// Ask makes a call and collects the reply as a generation pod does.
func (c *Scripted) Ask(t *testing.T, spec v1beta1.ChatModelConfigSpec, change func(*fantasy.Call)) (collect.Step,
	error) {
	t.Helper()
	return ask(t, spec, c, change)
}

// Ask makes a call over the transport and collects the reply as a generation pod does.
func Ask(t *testing.T, spec v1beta1.ChatModelConfigSpec, over http.RoundTripper) (collect.Step, error) {
	t.Helper()
	return ask(t, spec, over, nil)
}

func ask(t *testing.T, spec v1beta1.ChatModelConfigSpec, over http.RoundTripper, change func(*fantasy.Call)) (
	collect.Step, error,
) {
	t.Helper()
	model, err := provider.New(&spec, Key, &http.Client{Transport: over})
	check.OK(t, err)
	call := provider.Call(&spec, "")
	call.Prompt = fantasy.Prompt{fantasy.NewUserMessage("Hello?")}
	if change != nil {
		change(&call)
	}
	reply := collect.NewAccumulator(spec.Provider, 3, nil)
	stream, err := model.Stream(t.Context(), call)
	check.OK(t, err)
	for part := range stream {
		reply.Add(&part)
		if part.Type == fantasy.StreamPartTypeError {
			return reply.Finish(), part.Error
		}
	}
	return reply.Finish(), nil
}

// Events is one reply with these events. Anthropic's say twice what they are.
func Events(events ...string) []Reply {
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
	return []Reply{{http.StatusOK, body.String()}}
}

// Chunk is an event of OpenAI's Chat Completions protocol.
func Chunk(delta, finish string) string {
	return `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta +
		`,"finish_reason":` + finish + `}]}`
}

// Calls are the calls of a reply, as one text each.
func Calls(s collect.Step) (calls []string) {
	for _, part := range s.Parts {
		if call := part.ToolCall; call != nil {
			calls = append(calls, call.ID+" "+call.Name+" "+call.Input)
		}
	}
	return calls
}
