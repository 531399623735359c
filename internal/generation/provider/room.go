// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
)

const (
	// outputPart is which part of its context a model may write in any case: a quarter.
	outputPart = 4
	// bytesPerToken is how few bytes of a prompt a token can have.
	bytesPerToken = 2
	// fileTokens is about what an image takes.
	fileTokens = 2000
	// framing is what the roles and names of a prompt take.
	framing = 512
	// leastText is what a budget for thinking leaves for text.
	leastText = 1024
)

// Bound bounds the output of a call, whose prompt and tools are set, to what these leave of the context, unless the
// configuration sets a maximum: servers such as vLLM refuse a call whose prompt and maximum together exceed the
// context. limit is that of the context in tokens; 0: unknown.
func Bound(call *fantasy.Call, spec *v1beta1.ChatModelConfigSpec, limit int64) {
	if spec.MaxOutputTokens != nil || call.MaxOutputTokens == nil || limit <= 0 {
		return
	}
	call.MaxOutputTokens = new(min(*call.MaxOutputTokens, max(least(call, limit), limit-estimate(call)-framing)))
}

// least is how much a model may write in any case: a part of the context, and what Claude may think.
func least(call *fantasy.Call, limit int64) int64 {
	tokens := max(1, limit/outputPart)
	if budget := budgetOf(call); budget > 0 && budget+leastText < limit {
		tokens = max(tokens, budget+leastText)
	}
	return tokens
}

// budgetOf is how many tokens of its output the options let Claude think.
func budgetOf(call *fantasy.Call) (tokens int64) {
	options := wire.SettingsOf(call).Provider
	for _, o := range []*v1beta1.AnthropicOptions{options.Anthropic, options.Bedrock} {
		if o != nil && o.Thinking != nil {
			tokens = max(tokens, o.Thinking.BudgetTokens)
		}
	}
	return tokens
}

// estimate is how many tokens the prompt and the tools of a call have at most, but for texts in some languages.
func estimate(call *fantasy.Call) int64 {
	size, files := 0, 0
	for _, message := range call.Prompt {
		for _, part := range message.Content {
			switch part := part.(type) {
			case fantasy.TextPart:
				size += len(part.Text)
			case fantasy.ReasoningPart:
				size += len(part.Text)
			case fantasy.ToolCallPart:
				size += len(part.ToolName) + len(part.Input)
			case fantasy.ToolResultPart:
				size += sizeOf(part.Output)
			case fantasy.FilePart:
				files++
			}
		}
	}
	for _, tool := range call.Tools {
		size += sizeOf(tool)
	}
	return int64(size/bytesPerToken + files*fileTokens)
}

// sizeOf is the size of a value as JSON.
func sizeOf(value any) int {
	text, _ := json.Marshal(value) // What it cannot encode is not sent.
	return len(text)
}

// roomModel makes a call again with less output, if the provider refuses it because of the context and says how much
// that holds: the limit of a model of one's own is often not configured. The last time, it asks for the least: a prompt
// can have more tokens than estimated.
type roomModel struct {
	fantasy.LanguageModel
	spec *v1beta1.ChatModelConfigSpec
	// limit is what the provider has said; 0: nothing yet.
	limit atomic.Int64
}

func (m *roomModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	if m.spec.MaxOutputTokens != nil || call.MaxOutputTokens == nil {
		return m.LanguageModel.Stream(ctx, call)
	}
	Bound(&call, m.spec, m.limit.Load())
	return wire.Retry(ctx, m.LanguageModel, call, func(err error) *fantasy.Call {
		limit, again := fault.Classify(err, fault.Subject{Spec: m.spec}).ContextLimit, call
		if limit == 0 {
			return nil
		}
		if Bound(&again, m.spec, limit); *again.MaxOutputTokens >= *call.MaxOutputTokens {
			again.MaxOutputTokens = new(least(&call, limit))
		}
		if *again.MaxOutputTokens >= *call.MaxOutputTokens {
			return nil
		}
		m.limit.Store(limit)
		call = again
		return &again
	})
}
