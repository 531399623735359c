// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"bytes"
	"encoding/json"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	sdk "github.com/charmbracelet/openai-go"

	"parley.dev/parley/api/v1alpha1"
)

// CountOutput is an option for servers that imitate OpenAI. OpenAI counts the reasoning as output; some of them count
// it beside that, as xAI does. fantasy sees that where there is more reasoning than output, and not where only the
// total shows it.
func CountOutput() openaicompat.Option {
	return openaicompat.WithLanguageModelOptions(
		openai.WithLanguageModelUsageFunc(
			func(reply sdk.ChatCompletion) (fantasy.Usage, fantasy.ProviderOptionsData) {
				usage, metadata := openai.DefaultUsageFunc(reply)
				return withOutput(usage, reply.Usage), metadata
			}),
		openai.WithLanguageModelStreamUsageFunc(
			func(chunk sdk.ChatCompletionChunk, extra map[string]any, before fantasy.ProviderMetadata) (fantasy.Usage,
				fantasy.ProviderMetadata) {
				usage, metadata := openai.DefaultStreamUsageFunc(chunk, extra, before)
				if usage == (fantasy.Usage{}) {
					return usage, metadata // Of a chunk without counts.
				}
				return withOutput(usage, chunk.Usage), metadata
			}),
	)
}

// withOutput is the usage with the output as the server tells of it.
func withOutput(usage fantasy.Usage, told sdk.CompletionUsage) fantasy.Usage {
	reasoning := told.CompletionTokensDetails.ReasoningTokens
	usage.OutputTokens, usage.TotalTokens = told.CompletionTokens, told.TotalTokens
	if reasoning > told.CompletionTokens || told.TotalTokens == told.PromptTokens+told.CompletionTokens+reasoning {
		usage.OutputTokens += reasoning
	}
	return usage
}

// countsApart reports whether the reasoning of the model is never part of the output that is told, which no total
// shows: Vercel hands Gemini's counts on as they are.
func countsApart(spec *v1alpha1.ChatModelConfigSpec) bool {
	return spec.Provider == v1alpha1.ProviderVercel && strings.HasPrefix(spec.Model, "google/")
}

// apartCounts are the newest counts on the wire. fantasy adds some of the reasoning to what it tells of the output, and
// does not say whether it has.
type apartCounts struct{ newest *counts }

type counts struct {
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (c *apartCounts) read(data []byte) {
	var chunk struct {
		Usage *counts `json:"usage"`
	}
	if bytes.Contains(data, []byte(`"completion_tokens"`)) && json.Unmarshal(data, &chunk) == nil && chunk.Usage != nil {
		c.newest = chunk.Usage
	}
}

// in is the usage with the output that was read, if any was.
func (c *apartCounts) in(usage fantasy.Usage) fantasy.Usage {
	if c.newest != nil {
		usage.OutputTokens = c.newest.Completion + c.newest.Details.Reasoning
	}
	return usage
}
