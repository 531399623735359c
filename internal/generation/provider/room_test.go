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
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestOutputIsBoundedToRoomInTheContext(t *testing.T) {
	thinking := wire.Settings{Provider: v1beta1.ProviderOptions{Anthropic: &v1beta1.AnthropicOptions{
		Thinking: &v1beta1.AnthropicThinking{BudgetTokens: 16_000}}}}
	for name, c := range map[string]struct {
		prompt     int
		limit, max int64
		settings   wire.Settings
		want       int64
	}{
		"an unknown limit":    {1000, 0, 0, wire.Settings{}, 32_000},
		"a large context":     {1000, 200_000, 0, wire.Settings{}, 32_000},
		"a short prompt":      {2000, 32_768, 0, wire.Settings{}, 32_768 - 1000 - 512},
		"a long prompt":       {60_000, 32_768, 0, wire.Settings{}, 8192},
		"a small context":     {6000, 4096, 0, wire.Settings{}, 1024},
		"a configured one":    {60_000, 32_768, 9000, wire.Settings{}, 9000},
		"a tiny context":      {6000, 1000, 0, wire.Settings{}, 250},
		"a budget for Claude": {60_000, 32_768, 0, thinking, 17_024},
		"a budget too large":  {60_000, 8192, 0, thinking, 2048},
	} {
		spec := providertest.Specs["openai-compatible"]
		if c.max > 0 {
			spec.MaxOutputTokens = &c.max
		}
		call := provider.Call(&spec, "")
		call.Prompt = fantasy.Prompt{fantasy.NewUserMessage(strings.Repeat("x", c.prompt))}
		call.ProviderOptions = c.settings.With()
		provider.Bound(&call, &spec, c.limit)
		check.Equal(t, name, c.want, *call.MaxOutputTokens)
	}
}

func TestRefusedMaximumOfOutputIsLowered(t *testing.T) {
	refusal := providertest.Reply{Status: http.StatusBadRequest, Body: `{"object":"error","message":"This model's maximum ` +
		`context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 769 ` +
		`input tokens, for a total of at least 32769 tokens.","type":"BadRequestError","code":400}`}
	reply := providertest.Events(providertest.Chunk(`{"content":"Hi"}`, `"stop"`))
	server := &providertest.Scripted{Replies: append([]providertest.Reply{refusal, refusal}, reply...)}
	spec := providertest.Specs["openai-compatible"]
	model, err := provider.New(&spec, "", &http.Client{Transport: server})
	check.OK(t, err)
	for range 2 {
		call := provider.Call(&spec, "")
		call.Prompt = fantasy.Prompt{fantasy.NewUserMessage(strings.Repeat("x", 2000))}
		stream, err := model.Stream(t.Context(), call)
		check.OK(t, err)
		for part := range stream {
			check.OK(t, part.Error)
		}
	}
	var sent []float64
	for _, body := range server.Sent {
		var fields map[string]any
		check.OK(t, json.Unmarshal([]byte(body), &fields))
		sent = append(sent, fields["max_tokens"].(float64))
	}
	estimated := float64(32_768 - 1000 - 512)
	check.Equal(t, "maximums", []float64{32_000, estimated, 8192, estimated}, sent)
}

func TestTooLongPromptIsNotAskedAgain(t *testing.T) {
	refusal := providertest.Reply{Status: http.StatusBadRequest,
		Body: `{"error":{"message":"This model's maximum context length is 4096 tokens.","code":"context_length_exceeded"}}`}
	server := &providertest.Scripted{Replies: []providertest.Reply{refusal}}
	spec := providertest.Specs["openai-compatible"]
	_, err := server.Ask(t, spec, func(call *fantasy.Call) { call.MaxOutputTokens = new(int64(1000)) })
	check.Equal(t, "failed, requests", []any{true, 1}, []any{err != nil, len(server.Sent)})
}
