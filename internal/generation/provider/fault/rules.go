// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"parley.dev/parley/api/v1beta1"
)

// retryPolicy is whether the same call may succeed later.
type retryPolicy int

const (
	// retryNever: a person has to change something first, whatever the provider says.
	retryNever retryPolicy = iota
	// retryIfAsked: no, unless the provider says so.
	retryIfAsked
	// retryAlways: yes, unless the provider says that it will not.
	retryAlways
)

// Statuses for a lack of capacity: Anthropic's, and Groq's.
const (
	statusOverloaded = 529
	statusNoCapacity = 498
)

// rule is a row of the classification: what an error looks like, and what it is.
type rule struct {
	reason  v1beta1.ErrorReason
	retry   retryPolicy
	matches func(*findings) bool
	// explanation, if any, replaces the reason's.
	explanation explanation
}

// rules: the first that matches wins, so that the order is part of the meaning. The names and phrases are the
// providers', in small letters.
var rules = []rule{
	{v1beta1.ErrorCanceled, retryNever, func(f *findings) bool { return f.canceled }, explanation{}},
	{v1beta1.ErrorContentFiltered, retryNever, ends(v1beta1.ReplyFiltered), explanation{}},
	{v1beta1.ErrorEmptyReply, retryAlways, ends(v1beta1.ReplyEmpty), explanation{}},
	{v1beta1.ErrorReplyFailed, retryAlways, ends(v1beta1.ReplyFailed), explanation{}},
	{v1beta1.ErrorProviderTimeout, retryAlways, func(f *findings) bool { return f.silence > 0 }, explanation{}},
	{v1beta1.ErrorAuthenticationFailed, retryNever, func(f *findings) bool {
		return f.login != nil && !f.login.isTemporary()
	}, explanation{}},
	{v1beta1.ErrorAuthenticationFailed, retryAlways, func(f *findings) bool { return f.login != nil }, explanation{}},
	{v1beta1.ErrorModelConfigInvalid, retryNever, func(f *findings) bool { return f.forbiddenHost },
		explainForbiddenHost},
	{v1beta1.ErrorModelConfigInvalid, retryNever, isRefusedByProxy, explainProxyRefused},
	{v1beta1.ErrorProviderUnavailable, retryAlways, func(f *findings) bool { return f.proxy != nil }, explainProxyFailed},
	{v1beta1.ErrorRequestRejected, retryIfAsked, func(f *findings) bool { return f.redirect != nil }, explainRedirect},
	// A server that sends so much without an error is no model, or would be paid for as much again.
	{v1beta1.ErrorRequestRejected, retryIfAsked, func(f *findings) bool { return f.oversized != nil && f.status == 0 },
		explainOversized},
	{v1beta1.ErrorProviderError, retryAlways, func(f *findings) bool { return f.oversized != nil }, explainOversized},
	{v1beta1.ErrorHistoryRejected, retryNever, isHistoryRejected, explanation{}},
	{v1beta1.ErrorRequestRejected, retryIfAsked, func(f *findings) bool { return f.page && f.status == 0 },
		explainElsewhere},
	{v1beta1.ErrorOverloaded, retryAlways, isOverloaded, explanation{}},
	{v1beta1.ErrorUsageLimitReached, retryNever, isUsedUp, explanation{}},
	{v1beta1.ErrorProviderDisabled, retryNever, isDisabled, explanation{}},
	{v1beta1.ErrorAuthenticationFailed, retryNever, isUnauthenticated, explanation{}},
	{v1beta1.ErrorPermissionDenied, retryNever, func(f *findings) bool { return isForbidden(f) && !isMoreSpecific(f) },
		explanation{}},
	{v1beta1.ErrorRateLimited, retryAlways, func(f *findings) bool { return isRateLimited(f) && !isMoreSpecific(f) },
		explanation{}},
	{v1beta1.ErrorModelConfigInvalid, retryNever, lost(isInvalidURL), explanation{}},
	{v1beta1.ErrorTLSFailed, retryNever, lost(isA[*tls.CertificateVerificationError]), explanation{}},
	{v1beta1.ErrorTLSFailed, retryNever, lost(isNoTLS), explainNoTLS},
	{v1beta1.ErrorProviderUnavailable, retryAlways, lost(isOfProxy), explainNoProxy},
	{v1beta1.ErrorProviderUnavailable, retryAlways, lost(isA[*net.DNSError]), explainUnresolved},
	{v1beta1.ErrorProviderUnavailable, retryAlways,
		lost(isAny(syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH)), explainRefused},
	{v1beta1.ErrorProviderUnavailable, retryAlways, lost(isAny(io.ErrUnexpectedEOF)), explainTruncated},
	{v1beta1.ErrorProviderUnavailable, retryAlways, lost(isBrokenOff), explanation{}},
	{v1beta1.ErrorProviderUnavailable, retryAlways, lost(isTimeout), explainTimedOut},
	{v1beta1.ErrorProviderUnavailable, retryAlways, lost(isOfNetwork), explanation{}},
	{v1beta1.ErrorProviderUnavailable, retryAlways, isUnavailable, explanation{}},
	{v1beta1.ErrorContentFiltered, retryNever, isFiltered, explanation{}},
	{v1beta1.ErrorContextTooLong, retryNever, exceedsRate, explainExceedsRate},
	{v1beta1.ErrorContextTooLong, retryNever, isTooLong, explanation{}},
	{v1beta1.ErrorModelNotFound, retryNever, isModelUnknown, explanation{}},
	// These names say more than their 4xx status: of Groq, the model wrote an invalid call; of Bedrock, it failed.
	{v1beta1.ErrorReplyFailed, retryAlways, func(f *findings) bool { return f.is("tool_use_failed") }, explanation{}},
	{v1beta1.ErrorProviderError, retryAlways, func(f *findings) bool { return f.is("modelerrorexception") },
		explanation{}},
	{v1beta1.ErrorRequestRejected, retryIfAsked, isUnknownPath, explainElsewhere},
	{v1beta1.ErrorRequestRejected, retryIfAsked, isInvalid, explanation{}},
	{v1beta1.ErrorProviderError, retryAlways, isServerError, explanation{}},
	{v1beta1.ErrorUnknown, retryIfAsked, func(*findings) bool { return true }, explanation{}},
}

// isRefusedByProxy: a proxy does not let the call pass, or wants credentials, which only proxies ask for with 407.
func isRefusedByProxy(f *findings) bool {
	return f.status == http.StatusProxyAuthRequired ||
		f.proxy != nil && f.status < http.StatusInternalServerError && f.status != http.StatusRequestTimeout &&
			f.status != http.StatusTooManyRequests
}

// ends matches a reply that ended so.
func ends(as v1beta1.ReplyOutcome) func(*findings) bool {
	return func(f *findings) bool { return f.reply != nil && f.reply.Outcome == as }
}

// isMoreSpecific reports whether the provider is more specific than a status for permission or rate.
func isMoreSpecific(f *findings) bool {
	return isFiltered(f) || exceedsRate(f) || isTooLong(f) || isModelUnknown(f)
}

// isHistoryRejected: the calls, results, reasoning and former replies that were sent do not belong together.
func isHistoryRejected(f *findings) bool {
	return f.is("previous_response_not_found", "invalid_encrypted_content") || f.tells(
		"no tool output found for function call", "no tool call found for function call output",
		"without its required following item", "without its required 'reasoning' item", "previous response with id",
		"must be a response to a preceding message with 'tool_calls'", "must be followed by tool messages",
		"`tool_use` ids were found without", "unexpected `tool_use_id` found in `tool_result`",
		"invalid `signature` in `thinking` block", "in `redacted_thinking` block", "bound to a different conversation",
		"thought_signature", "number of function response parts",
		"function call turn comes immediately after",
	)
}

// serverSide: a message about the server's state counts only where the status does not blame the request.
func (f *findings) serverSide() bool {
	return f.status == 0 || f.status == http.StatusTooManyRequests || f.status >= http.StatusInternalServerError
}

func isOverloaded(f *findings) bool {
	return f.has(statusOverloaded, statusNoCapacity) ||
		f.is("overloaded_error", "overloaded", "slow_down", "modelnotreadyexception", "engine_overloaded_error",
			"capacity_exceeded") ||
		f.serverSide() && f.tells("overloaded", "at capacity", "over capacity")
}

// isUsedUp: a limit that comes back within minutes is one of a rate, whatever the words.
func isUsedUp(f *findings) bool {
	if f.status == http.StatusPaymentRequired || f.daily ||
		f.is("insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active",
			"exceeded_current_quota_error", "servicequotaexceededexception") {
		return true
	}
	return f.wait == 0 && f.mentions("exceeded your current quota", "credit balance is too low", "insufficient credit",
		"insufficient balance", "billing hard limit", "specified api usage limits", "spending limit",
		"used all available credits")
}

func isDisabled(f *findings) bool {
	return f.is("account_deactivated", "organization_deactivated", "service_disabled", "consumer_suspended") ||
		f.mentions("organization has been disabled", "account has been deactivated", "account has been disabled",
			"has been suspended", "api has not been used in project")
}

func isUnauthenticated(f *findings) bool {
	if f.status == http.StatusUnauthorized || f.unauthenticated ||
		f.is("authentication_error", "invalid_api_key", "api_key_invalid", "unauthenticated", "unrecognizedclientexception",
			"expiredtokenexception", "invalidsignatureexception") {
		return true
	}
	return f.has(0, http.StatusBadRequest, http.StatusForbidden) &&
		f.mentions("api key not valid", "api key expired", "invalid api key", "incorrect api key", "invalid x-api-key",
			"unregistered callers", "security token included in the request is")
}

func isForbidden(f *findings) bool {
	return f.status == http.StatusForbidden || f.is("permission_error", "permission_denied", "accessdeniedexception")
}

func isRateLimited(f *findings) bool {
	return f.status == http.StatusTooManyRequests ||
		f.is("rate_limit_error", "rate_limit_exceeded", "too_many_requests", "resource_exhausted", "throttlingexception")
}

// isUnavailable: 409 is a conflict with another request, 425 and 520 to 530 are proxies' words for a server that they
// do not reach.
func isUnavailable(f *findings) bool {
	return f.has(http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 520, 521, 522, 523, 524, 530) ||
		f.is("timeout_error", "unavailable", "deadline_exceeded", "serviceunavailableexception", "modeltimeoutexception",
			"vector_store_timeout")
}

func isFiltered(f *findings) bool {
	return f.is("content_filter", "content_policy_violation", "content_filter_error", "responsibleaipolicyviolation",
		"invalid_prompt", "cyber_policy_violation", "moderation") ||
		f.tells("content management policy", "content filtering policy", "requires moderation",
			"flagged as potentially violating", "prohibited content")
}

// exceedsRate: a request that alone is more than the rate allows never gets through.
func exceedsRate(f *findings) bool {
	return isRateLimited(f) && f.mentions("request too large for", "request is too large for")
}

func isTooLong(f *findings) bool {
	return f.status == http.StatusRequestEntityTooLarge ||
		f.is("context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "request_too_large",
			"model_context_window_exceeded") ||
		f.tells("prompt is too long", "context length", "exceed context limit", "context window",
			"available context size", "maximum prompt length", "maximum model length", "input is too long",
			"input token count", "too many input tokens", "model token limit", "prompt exceeds max length",
			"tokens to keep from the initial prompt")
}

// modelPhrases are the providers' words for a model that does not exist, or not for this key.
var modelPhrases = regexp.MustCompile(
	`\bmodels?\b.{0,300}\b(not found|not exist|no access|not have access|not a valid model|not available to your)\b|` +
		`\bmodel identifier is invalid|\bis not a valid model id|\baccess to the model\b|\bmodel access is denied|` +
		`\b(unknown|invalid) model\b|^model: `)

func isModelUnknown(f *findings) bool {
	return f.is("model_not_found", "deploymentnotfound", "invalid_model", "unknown_model") ||
		f.has(0, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests) &&
			modelPhrases.MatchString(f.text)
}

// isUnknownPath: the server does not know the path, and is no provider, which would send a message.
func isUnknownPath(f *findings) bool { return f.status == http.StatusNotFound && f.message == "" }

func isInvalid(f *findings) bool {
	return f.status >= http.StatusBadRequest && f.status < http.StatusInternalServerError ||
		f.has(http.StatusNotImplemented, http.StatusHTTPVersionNotSupported) ||
		f.is("not_found_error", "validationexception", "validation", "badrequesterror") ||
		slices.ContainsFunc(f.names, func(name string) bool {
			return strings.HasPrefix(name, "invalid_") || strings.HasPrefix(name, "unsupported_")
		})
}

func isServerError(f *findings) bool {
	return f.status >= http.StatusInternalServerError ||
		f.is("server_error", "api_error", "internal_error", "internal", "internalservererror", "internal_server_error",
			"internalserverexception", "modelstreamerrorexception")
}
