// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package finish

import (
	"strings"

	"parley.dev/parley/api/v1alpha1"
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
func ProtocolOf(spec *v1alpha1.ChatModelConfigSpec) Protocol {
	switch {
	case spec.Provider == v1alpha1.ProviderAnthropic, spec.Provider == v1alpha1.ProviderBedrock:
		return Messages
	case spec.Provider == v1alpha1.ProviderGoogle:
		return Gemini
	case spec.Transport == v1alpha1.TransportResponses:
		return Responses
	}
	return ChatCompletions
}

// Row is what a finish reason of a protocol means.
type Row struct {
	Protocol Protocol
	// Reason is the provider's word; empty: the stream ended in order and gave none.
	Reason  string
	Outcome v1alpha1.ReplyOutcome
}

// Table has the finish reasons that the providers document, and those that servers were seen to send. A reason that is
// not in it is v1alpha1.ReplyFailed.
//
// Sources: the API references of OpenAI, Anthropic (stop_reason, and Bedrock's for guardrails) and Google
// (FinishReason, BlockedReason); of those that imitate OpenAI Mistral (model_length), Text Generation Inference
// (eos_token, stop_sequence), Together (eos), DeepSeek (insufficient_system_resource), Z.ai (sensitive,
// model_context_window_exceeded, network_error), watsonx (time_limit, cancelled) and the AI SDK's words, which
// Vercel's gateway uses (tool-calls, content-filter).
var Table = []Row{
	{ChatCompletions, "stop", v1alpha1.ReplyComplete},
	{ChatCompletions, "stop_sequence", v1alpha1.ReplyComplete},
	{ChatCompletions, "eos", v1alpha1.ReplyComplete},
	{ChatCompletions, "eos_token", v1alpha1.ReplyComplete},
	{ChatCompletions, "", v1alpha1.ReplyComplete},
	{ChatCompletions, "tool_calls", v1alpha1.ReplyToolCalls},
	{ChatCompletions, "tool-calls", v1alpha1.ReplyToolCalls},
	{ChatCompletions, "function_call", v1alpha1.ReplyToolCalls},
	{ChatCompletions, "length", v1alpha1.ReplyCutByLength},
	{ChatCompletions, "model_length", v1alpha1.ReplyCutByLength},
	{ChatCompletions, "max_tokens", v1alpha1.ReplyCutByLength},
	{ChatCompletions, "model_context_window_exceeded", v1alpha1.ReplyCutByLength},
	{ChatCompletions, "time_limit", v1alpha1.ReplyCutByLength},
	{ChatCompletions, "content_filter", v1alpha1.ReplyFiltered},
	{ChatCompletions, "content-filter", v1alpha1.ReplyFiltered},
	{ChatCompletions, "refusal", v1alpha1.ReplyFiltered},
	{ChatCompletions, "sensitive", v1alpha1.ReplyFiltered},
	{ChatCompletions, "error", v1alpha1.ReplyFailed},
	{ChatCompletions, "abort", v1alpha1.ReplyFailed},
	{ChatCompletions, "cancelled", v1alpha1.ReplyFailed},
	{ChatCompletions, "network_error", v1alpha1.ReplyFailed},
	{ChatCompletions, "insufficient_system_resource", v1alpha1.ReplyFailed},

	{Responses, "completed", v1alpha1.ReplyComplete},
	{Responses, "max_output_tokens", v1alpha1.ReplyCutByLength},
	{Responses, "content_filter", v1alpha1.ReplyFiltered},
	{Responses, "cancelled", v1alpha1.ReplyFailed},

	{Messages, "end_turn", v1alpha1.ReplyComplete},
	{Messages, "stop_sequence", v1alpha1.ReplyComplete},
	{Messages, "tool_use", v1alpha1.ReplyToolCalls},
	{Messages, "max_tokens", v1alpha1.ReplyCutByLength},
	{Messages, "model_context_window_exceeded", v1alpha1.ReplyCutByLength},
	{Messages, "refusal", v1alpha1.ReplyFiltered},
	{Messages, "content_filtered", v1alpha1.ReplyFiltered},
	{Messages, "guardrail_intervened", v1alpha1.ReplyFiltered},
	{Messages, "pause_turn", v1alpha1.ReplyPaused},

	{Gemini, "STOP", v1alpha1.ReplyComplete},
	{Gemini, "MAX_TOKENS", v1alpha1.ReplyCutByLength},
	{Gemini, "SAFETY", v1alpha1.ReplyFiltered},
	{Gemini, "BLOCKLIST", v1alpha1.ReplyFiltered},
	{Gemini, "PROHIBITED_CONTENT", v1alpha1.ReplyFiltered},
	{Gemini, "SPII", v1alpha1.ReplyFiltered},
	{Gemini, "IMAGE_SAFETY", v1alpha1.ReplyFiltered},
	{Gemini, "IMAGE_PROHIBITED_CONTENT", v1alpha1.ReplyFiltered},
	{Gemini, "MODEL_ARMOR", v1alpha1.ReplyFiltered},
	{Gemini, "JAILBREAK", v1alpha1.ReplyFiltered},
	{Gemini, "RECITATION", v1alpha1.ReplyFailed},
	{Gemini, "IMAGE_RECITATION", v1alpha1.ReplyFailed},
	{Gemini, "LANGUAGE", v1alpha1.ReplyFailed},
	{Gemini, "OTHER", v1alpha1.ReplyFailed},
	{Gemini, "IMAGE_OTHER", v1alpha1.ReplyFailed},
	{Gemini, "NO_IMAGE", v1alpha1.ReplyFailed},
	{Gemini, "MALFORMED_FUNCTION_CALL", v1alpha1.ReplyFailed},
	{Gemini, "MALFORMED_RESPONSE", v1alpha1.ReplyFailed},
	{Gemini, "MISSING_THOUGHT_SIGNATURE", v1alpha1.ReplyFailed},
	{Gemini, "UNEXPECTED_TOOL_CALL", v1alpha1.ReplyFailed},
	{Gemini, "TOO_MANY_TOOL_CALLS", v1alpha1.ReplyFailed},
	{Gemini, "FINISH_REASON_UNSPECIFIED", v1alpha1.ReplyFailed},
}

// OutcomeOf is what the table says of the finish reason of a protocol.
func OutcomeOf(protocol Protocol, reason string) v1alpha1.ReplyOutcome {
	if protocol == ChatCompletions { // Some servers write it in capitals.
		reason = strings.ToLower(reason)
	}
	for _, row := range Table {
		if row.Protocol == protocol && row.Reason == reason {
			return row.Outcome
		}
	}
	return v1alpha1.ReplyFailed
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
func Of(protocol Protocol, reason string, c Content) v1alpha1.ReplyOutcome {
	if c.Blocked {
		return v1alpha1.ReplyFiltered
	}
	switch outcome := OutcomeOf(protocol, reason); {
	case outcome != v1alpha1.ReplyComplete && outcome != v1alpha1.ReplyToolCalls:
		return outcome
	case c.Refused:
		return v1alpha1.ReplyRefused
	case c.Calls:
		return v1alpha1.ReplyToolCalls
	case c.Text:
		return v1alpha1.ReplyComplete
	}
	return v1alpha1.ReplyEmpty
}
