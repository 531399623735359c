// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/messages"
	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/internal/generation/provider/wire"
)

// outputTool is the tool that takes an answer where the provider has no answers by a schema.
const outputTool = "submit_answer"

// toolFirst is the instruction for a model that cannot be forced.
const toolFirst = "Give your final answer by calling " + outputTool + ". Use your other tools before, as you need them."

// outputModel asks for an answer by a schema through a tool, where the provider of its configuration has no such
// answers. What the model calls the tool with becomes its text.
type outputModel struct {
	fantasy.LanguageModel
	spec *v1beta1.ChatModelConfigSpec
}

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
		r := &outputReply{yield: yield, started: map[string]bool{}}
		for part := range stream {
			if !r.pass(part) {
				return
			}
		}
	}, nil
}

// through is the call with the tool, which the model has to call unless it calls another one, or the one that the
// caller chose. Claude cannot be forced while it thinks.
func (m outputModel) through(call fantasy.Call, settings wire.Settings) fantasy.Call {
	answer := fantasy.FunctionTool{
		Name: outputTool, Description: "Takes your final answer.", InputSchema: settings.Output.Schema,
	}
	toolChoice := fantasy.ToolChoiceAuto
	if call.ToolChoice != nil {
		toolChoice = *call.ToolChoice
	}
	others := slices.DeleteFunc(slices.Clone(call.Tools), func(t fantasy.Tool) bool {
		return toolChoice == fantasy.ToolChoiceNone || t.GetName() == outputTool
	})
	call.Tools = append(others, answer)
	settings.Output = nil
	call.ProviderOptions = settings.With()
	switch toolChoice {
	case fantasy.ToolChoiceAuto, fantasy.ToolChoiceNone, fantasy.ToolChoiceRequired:
	default: // It is one tool.
		return call
	}
	if m.isUnforced(toolChoice, &settings) {
		call.Prompt = slices.Insert(slices.Clone(call.Prompt), 0, fantasy.NewSystemMessage(toolFirst))
		call.ToolChoice = nil
		return call
	}
	choice := fantasy.ToolChoiceRequired
	if len(others) == 0 {
		choice = fantasy.SpecificToolChoice(outputTool)
	}
	call.ToolChoice = &choice
	return call
}

// isUnforced reports whether the model cannot be forced to call the tool. A call that the caller requires precedes
// thoughts.
func (m outputModel) isUnforced(choice fantasy.ToolChoice, settings *wire.Settings) bool {
	if !IsClaude(m.spec.Provider) {
		return false
	}
	return messages.ClaudeOf(m.spec.Model).Unforced ||
		choice != fantasy.ToolChoiceRequired && claudeThinks(settings, m.spec)
}

// claudeThinks reports whether a call has Claude think.
func claudeThinks(settings *wire.Settings, spec *v1beta1.ChatModelConfigSpec) bool {
	if settings.Effort != "" {
		return settings.Effort != v1beta1.EffortNone
	}
	options := settings.Provider.Anthropic
	if spec.Provider == v1beta1.ProviderBedrock {
		options = settings.Provider.Bedrock
	}
	return options != nil && (options.Thinking != nil || options.Effort != "")
}

// outputReply passes on a reply. A call of the tool becomes its text, in place of the model's other text: the text
// of an answer is JSON. That is held until the reply calls another tool, or ends.
type outputReply struct {
	yield func(fantasy.StreamPart) bool
	// started are the ids of the calls of the tool, with whether text of them has come.
	started map[string]bool
	// held begins with a text.
	held []fantasy.StreamPart
}

// pass passes on a part, or holds it. It reports whether to continue.
func (r *outputReply) pass(part fantasy.StreamPart) bool {
	switch _, isAnswer := r.started[part.ID]; part.Type {
	case fantasy.StreamPartTypeToolInputStart:
		if part.ToolCallName == outputTool {
			r.started[part.ID] = false
			r.held = slices.DeleteFunc(r.held, isText)
			return r.release() && r.yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextStart, ID: part.ID})
		}
	case fantasy.StreamPartTypeToolInputDelta, fantasy.StreamPartTypeToolInputEnd, fantasy.StreamPartTypeToolCall:
		if isAnswer {
			return r.answer(part)
		}
	}
	return r.other(part)
}

// other passes on, or holds, a part that is not of an answer.
func (r *outputReply) other(part fantasy.StreamPart) bool {
	switch {
	case isText(part) && len(r.started) > 0:
		return true
	case ends(&part):
		return r.release() && r.yield(part)
	case isText(part), len(r.held) > 0:
		r.held = append(r.held, part)
		return true
	}
	return r.yield(part)
}

// answer passes on a part of a call of the tool, as text.
func (r *outputReply) answer(part fantasy.StreamPart) bool {
	text := fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: part.ID}
	switch part.Type {
	case fantasy.StreamPartTypeToolInputDelta:
		r.started[part.ID], text.Delta = true, part.Delta
		return r.yield(text)
	case fantasy.StreamPartTypeToolCall:
		text.Delta = part.ToolCallInput
		end := fantasy.StreamPart{Type: fantasy.StreamPartTypeTextEnd, ID: part.ID}
		return (r.started[part.ID] || r.yield(text)) && r.yield(end)
	}
	return true
}

// release passes on the held parts.
func (r *outputReply) release() bool {
	for _, part := range r.held {
		if !r.yield(part) {
			return false
		}
	}
	r.held = nil
	return true
}

func isText(part fantasy.StreamPart) bool {
	switch part.Type {
	case fantasy.StreamPartTypeTextStart, fantasy.StreamPartTypeTextDelta, fantasy.StreamPartTypeTextEnd:
		return true
	}
	return false
}

// ends reports whether a part says that what was held does not stand next to an answer: that a tool of Parley is
// called, or that the reply ends.
func ends(part *fantasy.StreamPart) bool {
	switch part.Type {
	case fantasy.StreamPartTypeFinish, fantasy.StreamPartTypeError:
		return true
	}
	return part.Type == fantasy.StreamPartTypeToolInputStart && !part.ProviderExecuted
}

// claudeWithOutput are the Claude models that answer by a schema: Opus from 4.1 on, the others from 4.5 on.
var claudeWithOutput = regexp.MustCompile(`claude-(?:opus-4-[1-9]|(?:sonnet|haiku)-4-[5-9]|[a-z]+-[5-9])(?:\D|$)`)

// hasOutput reports whether the provider of a configuration gives answers by a schema for the call.
func hasOutput(spec *v1beta1.ChatModelConfigSpec, call *fantasy.Call) bool {
	name := strings.ToLower(spec.Model)
	switch {
	case spec.StructuredOutput != "":
		return spec.StructuredOutput == v1beta1.StructuredOutputNative
	case spec.Provider == v1beta1.ProviderAnthropic:
		return claudeWithOutput.MatchString(name) && schema.IsForClaude(wire.SettingsOf(call).Output.Schema)
	case spec.Provider == v1beta1.ProviderBedrock:
		return false
	case spec.Provider == v1beta1.ProviderGoogle:
		return len(call.Tools) == 0 || gemini.IsGemini3(name) // Earlier ones take no schema next to tools.
	}
	return true
}
