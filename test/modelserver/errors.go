// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// apiError is an HTTP error before it has the shape of a provider.
type apiError struct {
	status  int
	kind    string
	code    string
	param   string
	message string
	// retry is when to come back, for a provider that says so in the body.
	retry *RetryAfter
}

func badRequest(param, code, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, param: param, code: code, message: fmt.Sprintf(format, args...)}
}

// openAIErrors and anthropicErrors are what the providers' references say about each status.
var openAIErrors = map[int]apiError{
	http.StatusBadRequest: {kind: "invalid_request_error", message: "Invalid request."},
	http.StatusUnauthorized: {kind: "invalid_request_error", code: "invalid_api_key",
		message: "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."},
	http.StatusForbidden: {kind: "request_forbidden", code: "unsupported_country_region_territory",
		message: "Country, region, or territory not supported"},
	http.StatusNotFound: {kind: "invalid_request_error", message: "Not found."},
	http.StatusTooManyRequests: {kind: "requests", code: "rate_limit_exceeded",
		message: "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s."},
	http.StatusInternalServerError: {kind: "server_error",
		message: "The server had an error while processing your request. Sorry about that!"},
	http.StatusServiceUnavailable: {kind: "server_error",
		message: "The engine is currently overloaded, please try again later"},
}

var anthropicErrors = map[int]apiError{
	http.StatusBadRequest:   {kind: "invalid_request_error", message: "Invalid request."},
	http.StatusUnauthorized: {kind: "authentication_error", message: "invalid x-api-key"},
	http.StatusPaymentRequired: {kind: "billing_error",
		message: "Your credit balance is too low to access the Anthropic API."},
	http.StatusForbidden: {kind: "permission_error",
		message: "Your API key does not have permission to use the specified resource."},
	http.StatusNotFound:              {kind: "not_found_error", message: "Not found"},
	http.StatusRequestEntityTooLarge: {kind: "request_too_large", message: "Request exceeds the maximum size"},
	http.StatusTooManyRequests: {kind: "rate_limit_error",
		message: "This request would exceed your organization's rate limit."},
	http.StatusInternalServerError: {kind: "api_error", message: "Internal server error"},
	http.StatusGatewayTimeout:      {kind: "timeout_error", message: "Request timed out"},
	statusOverloaded:               {kind: "overloaded_error", message: "Overloaded"},
}

// complete fills what the error leaves open with what the provider uses for its status.
func (e apiError) complete(known map[int]apiError) apiError {
	standard, ok := known[e.status]
	if !ok {
		standard = known[http.StatusInternalServerError]
		if e.status < http.StatusInternalServerError {
			standard = known[http.StatusBadRequest]
		}
	}
	if e.kind == "" { // A type of its own has no code but its own.
		e.code = cmp.Or(e.code, standard.code)
	}
	e.kind = cmp.Or(e.kind, standard.kind)
	e.message = cmp.Or(e.message, standard.message)
	return e
}

func openAIErrorShape(e apiError, _ string) any {
	e = e.complete(openAIErrors)
	return object{"error": object{"message": e.message, "type": e.kind, "param": orNull(e.param), "code": orNull(e.code)}}
}

func anthropicErrorShape(e apiError, requestID string) any {
	e = e.complete(anthropicErrors)
	shape := object{"type": "error", "error": object{"type": e.kind, "message": e.message}}
	if requestID != "" {
		shape["request_id"] = requestID
	}
	return shape
}

// openAIWrongKey quotes the key whole. The provider masks most of it, but servers that imitate the provider may not,
// and it is for them that a client must never pass the message on as it is.
func openAIWrongKey(key string) apiError {
	e := apiError{status: http.StatusUnauthorized}
	if key == "" {
		e.kind = "invalid_request_error"
		e.message = "You didn't provide an API key. You need to provide your API key in an Authorization header " +
			"using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
		return e
	}
	e.message = "Incorrect API key provided: " + key +
		". You can find your API key at https://platform.openai.com/account/api-keys."
	return e
}

func openAIUnknownModel(model string) apiError {
	return apiError{
		status: http.StatusNotFound, code: "model_not_found",
		message: "The model `" + model + "` does not exist or you do not have access to it.",
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// The numbers in the messages of kind ContextTooLong.
const usedTokens, maxTokens = 210_000, 200_000

// apiError is the fault as an HTTP error.
func (f Fault) apiError(d dialect) apiError {
	e := apiError{status: f.Status, kind: f.Type, code: f.Code, message: f.Message}
	if f.Problem != "" {
		e = f.Problem.in(d.protocol())
		e.message = cmp.Or(f.Message, e.message)
	}
	if f.Kind == FaultContextTooLong {
		e = d.contextTooLong()
	}
	e.status = cmp.Or(e.status, http.StatusInternalServerError)
	return e
}

func (f Fault) setHeaders(h http.Header, now time.Time) {
	for name, value := range f.Headers {
		h.Set(name, value)
	}
	if f.RetryAfter == nil {
		return
	}
	if s := f.RetryAfter.Seconds; s != nil {
		h.Set("Retry-After", strconv.Itoa(*s))
	}
	if d := f.RetryAfter.Date; d != nil {
		h.Set("Retry-After", now.Add(time.Duration(*d)).UTC().Format(http.TimeFormat))
	}
	if ms := f.RetryAfter.Milliseconds; ms != nil {
		h.Set("Retry-After-Ms", strconv.Itoa(*ms))
	}
}

// contentText is the text of a message's content, which is a string, null or a list of parts.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}
