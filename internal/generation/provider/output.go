// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/wire"
)

// outputTool is the tool that takes an answer where the provider has no answers by a schema.
const outputTool = "submit_answer"

// toolFirst tells a model that cannot be forced what to do.
const toolFirst = "Give your final answer by calling " + outputTool + ". Use your other tools before, as you need them."

// outputModel asks for an answer by a schema through a tool, where the provider of its configuration has no such
// answers. What the model calls the tool with becomes its text.
type outputModel struct {
	fantasy.LanguageModel
	spec *v1alpha1.ChatModelConfigSpec
}

// Stream implements fantasy.LanguageModel.
func (m outputModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	settings := wire.SettingsOf(&call)
	if settings.Output == nil || hasOutput(m.spec, &call) {
		return m.LanguageModel.Stream(ctx, call)
	}
	stream, err := m.LanguageModel.Stream(ctx, m.through(call, settings))
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		answers := map[string]bool{}
		for part := range stream {
			if !passAnswer(answers, part, yield) {
				return
			}
		}
	}, nil
}

// through is the call with the tool, which the model has to call unless it calls another one. Claude cannot be forced
// while it thinks.
func (m outputModel) through(call fantasy.Call, settings wire.Settings) fantasy.Call {
	call.Tools = append(slices.Clone(call.Tools), fantasy.FunctionTool{
		Name: outputTool, Description: "Takes your final answer.", InputSchema: settings.Output.Schema,
	})
	settings.Output = nil
	call.ProviderOptions = maps.Clone(call.ProviderOptions)
	call.ProviderOptions[wire.Key] = &settings
	if ThinksOnlyIfTold(m.spec.Provider) && claudeThinks(&settings, m.spec) {
		call.Prompt = slices.Insert(slices.Clone(call.Prompt), 0, fantasy.NewSystemMessage(toolFirst))
		return call
	}
	choice := fantasy.ToolChoiceRequired
	if len(call.Tools) == 1 {
		choice = fantasy.SpecificToolChoice(outputTool)
	}
	call.ToolChoice = &choice
	return call
}

// claudeThinks reports whether a call tells Claude to think.
func claudeThinks(settings *wire.Settings, spec *v1alpha1.ChatModelConfigSpec) bool {
	if settings.Effort != "" {
		return settings.Effort != v1alpha1.EffortNone
	}
	options := settings.Provider.Anthropic
	if spec.Provider == v1alpha1.ProviderBedrock {
		options = settings.Provider.Bedrock
	}
	return options != nil && (options.Thinking != nil || options.Effort != "")
}

// passAnswer hands a part on. A call of the tool becomes text. answers are the ids of such calls, with whether text of
// them has come.
func passAnswer(answers map[string]bool, part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	begun, known := answers[part.ID]
	begins := part.Type == fantasy.StreamPartTypeToolInputStart || part.Type == fantasy.StreamPartTypeToolCall
	if !known && (!begins || part.ToolCallName != outputTool) {
		return yield(part)
	}
	text := fantasy.StreamPart{ID: part.ID}
	switch part.Type {
	case fantasy.StreamPartTypeToolInputStart:
		answers[part.ID], text.Type = false, fantasy.StreamPartTypeTextStart
	case fantasy.StreamPartTypeToolInputDelta:
		answers[part.ID], text.Type, text.Delta = true, fantasy.StreamPartTypeTextDelta, part.Delta
	case fantasy.StreamPartTypeToolCall:
		text.Type, text.Delta = fantasy.StreamPartTypeTextDelta, part.ToolCallInput
		return (begun || yield(text)) && yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextEnd, ID: part.ID})
	default: // The end of the input, which the call follows.
		return true
	}
	return yield(text)
}

// claudeWithOutput are the Claude models that answer by a schema: Opus from 4.1 on, the others from 4.5 on.
var claudeWithOutput = regexp.MustCompile(`claude-(?:opus-4-[1-9]|(?:sonnet|haiku)-4-[5-9]|[a-z]+-[5-9])(?:\D|$)`)

// earlyGemini are the Gemini models that take no schema beside tools.
var earlyGemini = regexp.MustCompile(`gemini-[12]\.`)

// hasOutput reports whether the provider of a configuration gives answers by a schema for the call.
func hasOutput(spec *v1alpha1.ChatModelConfigSpec, call *fantasy.Call) bool {
	name := strings.ToLower(spec.Model)
	switch {
	case spec.StructuredOutput != "":
		return spec.StructuredOutput == v1alpha1.StructuredOutputNative
	case spec.Provider == v1alpha1.ProviderAnthropic:
		return claudeWithOutput.MatchString(name)
	case spec.Provider == v1alpha1.ProviderBedrock:
		return false
	case spec.Provider == v1alpha1.ProviderGoogle:
		return len(call.Tools) == 0 || !earlyGemini.MatchString(name)
	}
	return true
}
