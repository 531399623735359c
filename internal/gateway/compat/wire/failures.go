// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/turn"
)

// failure is what clients are told of an error of a turn.
type failure struct {
	status     int
	kind, code string
}

// failures by the reason of the error. A reason that is not here is an error of the server, with its own word as code.
var failures = map[v1alpha1.ErrorReason]failure{
	v1alpha1.ErrorRateLimited:           {http.StatusTooManyRequests, RateLimit, "rate_limit_exceeded"},
	v1alpha1.ErrorUsageLimitReached:     {http.StatusTooManyRequests, Quota, "insufficient_quota"},
	v1alpha1.ErrorBudgetReached:         {http.StatusTooManyRequests, Quota, "insufficient_quota"},
	v1alpha1.ErrorOverloaded:            {http.StatusServiceUnavailable, Server, "overloaded"},
	v1alpha1.ErrorProviderUnavailable:   {http.StatusBadGateway, Server, "provider_unavailable"},
	v1alpha1.ErrorProviderSilent:        {http.StatusGatewayTimeout, Server, "provider_silent"},
	v1alpha1.ErrorProviderError:         {http.StatusBadGateway, Server, "provider_error"},
	v1alpha1.ErrorContextTooLong:        {http.StatusBadRequest, InvalidRequest, "context_length_exceeded"},
	v1alpha1.ErrorContentFiltered:       {http.StatusBadRequest, InvalidRequest, "content_filter"},
	v1alpha1.ErrorRequestRejected:       {http.StatusBadRequest, InvalidRequest, "request_rejected"},
	v1alpha1.ErrorOutputInvalid:         {http.StatusBadGateway, Server, "output_invalid"},
	v1alpha1.ErrorOutputSchemaInvalid:   {http.StatusBadRequest, InvalidRequest, "output_schema_invalid"},
	v1alpha1.ErrorModelNotFound:         {http.StatusNotFound, NotFound, "model_not_found"},
	v1alpha1.ErrorModelConfigNotFound:   {http.StatusNotFound, NotFound, "model_not_found"},
	v1alpha1.ErrorModelConfigDisabled:   {http.StatusNotFound, NotFound, "model_not_found"},
	v1alpha1.ErrorModelConfigNotAllowed: {http.StatusForbidden, Permission, "model_not_allowed"},
	"QueueFull":                         {http.StatusTooManyRequests, RateLimit, "queue_full"},
	"ResultsInvalid":                    {http.StatusBadRequest, InvalidRequest, "results_invalid"},
	"Superseded":                        {http.StatusConflict, InvalidRequest, "superseded"},
	turn.MessageDeleted:                 {http.StatusNotFound, NotFound, "message_deleted"},
	turn.ChatDeleted:                    {http.StatusNotFound, NotFound, "chat_deleted"},
	"Archived":                          {http.StatusConflict, InvalidRequest, "archived"},
}

// Failure is the error of a turn in OpenAI's form.
func Failure(e *stream.Error) *Error {
	if e == nil {
		e = &stream.Error{Reason: v1alpha1.ErrorInternal, Message: "the turn failed"}
	}
	f, ok := failures[e.Reason]
	if !ok {
		f = failure{http.StatusInternalServerError, Server, Snake(string(e.Reason))}
	}
	return &Error{Status: f.status, Type: f.kind, Code: &f.code, Message: e.Text()}
}

// Snake writes a CamelCase word in lower case with underscores.
func Snake(word string) string {
	var b strings.Builder
	for i, r := range word {
		upper := r >= 'A' && r <= 'Z'
		if upper && i > 0 && (word[i-1] < 'A' || word[i-1] > 'Z') {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}
