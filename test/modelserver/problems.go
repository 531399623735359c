// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"net/http"
)

// Problem is an error that its status alone does not tell. Each is worded as the provider words it.
type Problem string

const (
	// ProblemQuota is told when the account's credit is used up.
	ProblemQuota Problem = "Quota"
	// ProblemSpendLimit is told when the limit that the account's owner has set is reached.
	ProblemSpendLimit Problem = "SpendLimit"
	// ProblemNoAccess is told when the key may not use the model.
	ProblemNoAccess Problem = "NoAccess"
	// ProblemTooMuchAtOnce is told when the request alone is more than the rate of tokens allows.
	ProblemTooMuchAtOnce Problem = "TooMuchAtOnce"
	// ProblemContent is told when the provider does not answer this content.
	ProblemContent Problem = "Content"
	// ProblemDisabled is told when the account is disabled.
	ProblemDisabled Problem = "Disabled"
	// ProblemSetting is told when the model does not take a setting.
	ProblemSetting Problem = "Setting"
	// ProblemHistory is told when a tool call has no result.
	ProblemHistory Problem = "History"
	// ProblemCapacity is told when the model has no capacity.
	ProblemCapacity Problem = "Capacity"
)

// invalidRequest is the type of most errors that are the caller's, with OpenAI and with Anthropic.
const invalidRequest = "invalid_request_error"

// openAIProblems are common to both protocols of OpenAI.
var openAIProblems = map[Problem]apiError{
	ProblemQuota: {
		status: http.StatusTooManyRequests, kind: "insufficient_quota", code: "insufficient_quota",
		message: "You exceeded your current quota, please check your plan and billing details. For more information on " +
			"this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
	},
	ProblemSpendLimit: {
		status: http.StatusBadRequest, kind: invalidRequest, code: "billing_hard_limit_reached",
		message: "Billing hard limit has been reached",
	},
	ProblemNoAccess: {
		status: http.StatusForbidden, kind: invalidRequest, code: "model_not_found",
		message: "Project `proj_4711` does not have access to model `gpt-5`",
	},
	ProblemTooMuchAtOnce: {
		status: http.StatusTooManyRequests, kind: "tokens", code: "rate_limit_exceeded",
		message: "Request too large for gpt-5 in organization org-4711 on tokens per min (TPM): Limit 30000, Requested " +
			"63213. The input or output tokens must be reduced in order to run successfully. Visit " +
			"https://platform.openai.com/account/rate-limits to learn more.",
	},
	ProblemContent: {
		status: http.StatusBadRequest, kind: invalidRequest, code: "invalid_prompt",
		message: "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again " +
			"with a different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting",
	},
	ProblemDisabled: {
		status: http.StatusUnauthorized, kind: invalidRequest, code: "account_deactivated",
		message: "The OpenAI account associated with this API key has been deactivated. Please check your email for more " +
			"information.",
	},
	ProblemSetting: {
		status: http.StatusBadRequest, kind: invalidRequest, code: "unsupported_value", param: "temperature",
		message: "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is " +
			"supported.",
	},
	ProblemHistory: {
		status: http.StatusBadRequest, kind: invalidRequest, param: "messages",
		message: "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
			"'tool_call_id'. The following tool_call_ids did not have response messages: call_4711",
	},
	ProblemCapacity: {
		status: http.StatusServiceUnavailable, kind: "service_unavailable_error", code: "slow_down",
		message: "The model is currently overloaded with other requests. Please try again later.",
	},
}

// responsesProblems replace what the responses protocol words in its own way.
var responsesProblems = map[Problem]apiError{
	ProblemHistory: {status: http.StatusBadRequest, kind: invalidRequest, param: "input",
		message: "No tool output found for function call call_4711."},
}

var anthropicProblems = map[Problem]apiError{
	ProblemQuota: {
		status: http.StatusBadRequest, kind: invalidRequest,
		message: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or " +
			"purchase credits.",
	},
	ProblemSpendLimit: {
		status: http.StatusBadRequest, kind: invalidRequest,
		message: "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC.",
	},
	ProblemNoAccess: {status: http.StatusNotFound, kind: "not_found_error", message: "model: claude-opus-4-5"},
	ProblemTooMuchAtOnce: {
		status: http.StatusRequestEntityTooLarge, kind: "request_too_large", message: "Request exceeds the maximum size",
	},
	ProblemContent: {status: http.StatusBadRequest, kind: invalidRequest,
		message: "Output blocked by content filtering policy"},
	ProblemDisabled: {status: http.StatusBadRequest, kind: invalidRequest,
		message: "This organization has been disabled."},
	ProblemSetting: {status: http.StatusBadRequest, kind: invalidRequest, message: "temperature: range: 0..1"},
	ProblemHistory: {
		status: http.StatusBadRequest, kind: invalidRequest,
		message: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_4711. Each " +
			"`tool_use` block must have a corresponding `tool_result` block in the next message.",
	},
	ProblemCapacity: {status: statusOverloaded, kind: "overloaded_error", message: "Overloaded"},
}

// in is the problem in the words of a protocol; those of OpenAI's chat for one that has no words of its own.
func (p Problem) in(protocol Protocol) apiError {
	own := map[Protocol]map[Problem]apiError{OpenAIResponses: responsesProblems, Anthropic: anthropicProblems}[protocol]
	if e, ok := own[p]; ok {
		return e
	}
	return openAIProblems[p]
}

func (p Problem) validate() error {
	if _, ok := openAIProblems[p]; !ok && p != "" {
		return fmt.Errorf("unknown problem %q", p)
	}
	return nil
}
