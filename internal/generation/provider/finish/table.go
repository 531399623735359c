// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package finish

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// Protocol is a wire protocol between Parley and a model.
type Protocol string

// The protocols. Azure, OpenRouter, Vercel and compatible servers speak ChatCompletions, Bedrock speaks Messages.
const (
	ChatCompletions Protocol = "Chat Completions"
	Responses       Protocol = "Responses"
	Messages        Protocol = "Anthropic Messages"
	Gemini          Protocol = "Gemini"
)

// ProtocolOf is the protocol that the provider of a configuration speaks.
func ProtocolOf(spec *v1beta1.ChatModelConfigSpec) Protocol {
	switch {
	case spec.Provider == v1beta1.ProviderAnthropic, spec.Provider == v1beta1.ProviderBedrock:
		return Messages
	case spec.Provider == v1beta1.ProviderGoogle:
		return Gemini
	case spec.Transport == v1beta1.TransportResponses:
		return Responses
	}
	return ChatCompletions
}

// Row is the outcome of some finish reasons of a protocol.
type Row struct {
	Protocol Protocol
	Outcome  v1beta1.ReplyOutcome
	// Reasons are the provider's words; an empty one: the stream ended in order and gave none.
	Reasons []string
}

// Table has the finish reasons that the providers document, and those that servers were seen to send. A reason that is
// not in it is v1beta1.ReplyFailed.
//
// Sources: the API references of OpenAI, Anthropic (stop_reason, and Bedrock's for guardrails) and Google
// (FinishReason, BlockedReason); of those that imitate OpenAI Mistral (model_length), Text Generation Inference
// (eos_token, stop_sequence), Together (eos), DeepSeek (insufficient_system_resource), Z.ai (sensitive,
// model_context_window_exceeded, network_error), watsonx (time_limit, cancelled) and the AI SDK's words, which
// Vercel's gateway uses (tool-calls, content-filter).
var Table = []Row{
	{ChatCompletions, v1beta1.ReplyComplete, []string{"stop", "stop_sequence", "eos", "eos_token", ""}},
	{ChatCompletions, v1beta1.ReplyToolCalls, []string{"tool_calls", "tool-calls", "function_call"}},
	{ChatCompletions, v1beta1.ReplyMaxTokensReached, []string{"length", "model_length", "max_tokens",
		"model_context_window_exceeded", "time_limit"}},
	{ChatCompletions, v1beta1.ReplyFiltered, []string{"content_filter", "content-filter", "refusal", "sensitive"}},
	{ChatCompletions, v1beta1.ReplyFailed, []string{"error", "abort", "cancelled", "network_error",
		"insufficient_system_resource"}},
	{Responses, v1beta1.ReplyComplete, []string{"completed"}},
	{Responses, v1beta1.ReplyMaxTokensReached, []string{"max_output_tokens"}},
	{Responses, v1beta1.ReplyFiltered, []string{"content_filter"}},
	{Responses, v1beta1.ReplyFailed, []string{"cancelled"}},
	{Messages, v1beta1.ReplyComplete, []string{"end_turn", "stop_sequence"}},
	{Messages, v1beta1.ReplyToolCalls, []string{"tool_use"}},
	{Messages, v1beta1.ReplyMaxTokensReached, []string{"max_tokens", "model_context_window_exceeded"}},
	{Messages, v1beta1.ReplyFiltered, []string{"refusal", "content_filtered", "guardrail_intervened"}},
	{Messages, v1beta1.ReplyPaused, []string{"pause_turn"}},
	{Gemini, v1beta1.ReplyComplete, []string{"STOP"}},
	{Gemini, v1beta1.ReplyMaxTokensReached, []string{"MAX_TOKENS"}},
	{Gemini, v1beta1.ReplyFiltered, []string{"SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "MODEL_ARMOR", "JAILBREAK"}},
	{Gemini, v1beta1.ReplyFailed, []string{"RECITATION", "IMAGE_RECITATION", "LANGUAGE", "OTHER", "IMAGE_OTHER",
		"NO_IMAGE", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE",
		"UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "FINISH_REASON_UNSPECIFIED"}},
}

// OutcomeOf is the outcome that the table has for the finish reason of a protocol.
func OutcomeOf(protocol Protocol, reason string) v1beta1.ReplyOutcome {
	if protocol == ChatCompletions { // Some servers write it in capitals.
		reason = strings.ToLower(reason)
	}
	for _, row := range Table {
		if row.Protocol == protocol && slices.Contains(row.Reasons, reason) {
			return row.Outcome
		}
	}
	return v1beta1.ReplyFailed
}

// Content is what a reply had.
type Content struct {
	// Text is whether it had any that is not blank, Calls whether it had whole calls of tools that Parley runs.
	Text, Calls bool
	// Refused is whether the provider marks the text as a refusal.
	Refused bool
	// Blocked is whether the provider did not let the model read the prompt.
	Blocked bool
}

// Of is how a reply with that content ended.
func Of(protocol Protocol, reason string, c Content) v1beta1.ReplyOutcome {
	if c.Blocked {
		return v1beta1.ReplyFiltered
	}
	switch outcome := OutcomeOf(protocol, reason); {
	case outcome != v1beta1.ReplyComplete && outcome != v1beta1.ReplyToolCalls:
		return outcome
	case c.Refused:
		return v1beta1.ReplyRefused
	case c.Calls:
		return v1beta1.ReplyToolCalls
	case c.Text:
		return v1beta1.ReplyComplete
	}
	return v1beta1.ReplyEmpty
}
