// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
)

// answer is the provider's own error, as its protocol defines it.
type answer struct {
	// message is the error message.
	message string
	// cause is what a gateway was told by the provider that it asked. It is compared by tells alone, and not quoted.
	cause string
	// names are the provider's names for the error (code, type, status), in small letters.
	names []string
	// number is an HTTP status that the error itself names; 0: none.
	number int
	// wait is how long the provider asks to wait; 0: unknown.
	wait time.Duration
	// daily is whether the limit that was hit is one of a day.
	daily bool
}

// maxErrorBody is the longest body that is read: an error is short, and a long body is something else.
const maxErrorBody = 64 << 10

// decode reads the answer that came with an HTTP status, or as an event of a stream. Package wire writes the names of
// headers in small letters.
func decode(e *fantasy.ProviderError, from v1beta1.ModelProvider) (a answer) {
	a.read(e.ResponseBody, from)
	kind, _, _ := strings.Cut(e.ResponseHeaders["x-amzn-errortype"], ":")
	a.name(kind)
	return a
}

// errorBody is what providers send, and servers that imitate them.
type errorBody struct {
	// Error is an object, or with some servers the message itself, or its status; or a list of such.
	Error json.RawMessage `json:"error"`
	// Kind is the name that goes with an Error that is a message.
	Kind json.RawMessage `json:"error_type"`
	// Object, or Type, is "error" where the fields are next to it instead of within Error.
	Object string `json:"object"`
	errorFields
}

// errorFields has raw fields where servers have several types.
type errorFields struct {
	Message string           `json:"message"`
	Type    string           `json:"type"`
	Code    json.RawMessage  `json:"code"`
	Status  json.RawMessage  `json:"status"`
	Details []map[string]any `json:"details"`
	// Metadata of OpenRouter has the error of the provider that it asked.
	Metadata struct {
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
}

// isError is the name that only says that something is an error.
const isError = "error"

// read reads a body. Fields of other types than these stay empty.
func (a *answer) read(body []byte, from v1beta1.ModelProvider) {
	if body = firstOf(body); len(body) > maxErrorBody || !json.Valid(body) {
		return
	}
	var b errorBody
	_ = json.Unmarshal(body, &b)
	inner := firstOf(b.Error)
	var fields errorFields
	switch {
	case len(inner) > 0 && inner[0] == '{':
		_ = json.Unmarshal(inner, &fields)
	case b.Error != nil, b.Object == isError, b.Type == isError, from == v1beta1.ProviderBedrock:
		fields = b.errorFields
		_ = json.Unmarshal(inner, &fields.Message)
		a.code(b.Kind)
		a.code(inner)
	}
	a.message, a.cause = fields.Message, string(fields.Metadata.Raw)
	if fields.Type != isError {
		a.name(fields.Type)
	}
	a.code(fields.Code)
	a.code(fields.Status)
	for _, detail := range fields.Details {
		a.detail(detail)
	}
}

// firstOf is the first element of a list, and anything else as it is.
func firstOf(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return raw
}

// code reads a name, or a number that is an HTTP status, which can be a text.
func (a *answer) code(raw json.RawMessage) {
	name := strings.Trim(string(raw), `"`)
	if number, err := strconv.Atoi(name); err == nil {
		a.number = cmp.Or(a.number, errorStatus(number))
	} else if json.Unmarshal(raw, &name) == nil {
		a.name(name)
	}
}

func (a *answer) empty() bool { return a.message == "" && len(a.names) == 0 && a.number == 0 }

func (a *answer) name(name string) {
	if name != "" {
		a.names = append(a.names, strings.ToLower(name))
	}
}

// detail reads one of the details of google.rpc.Status.
func (a *answer) detail(detail map[string]any) {
	reason, _ := detail["reason"].(string)
	a.name(reason)
	if delay, ok := detail["retryDelay"].(string); ok {
		if wait, err := time.ParseDuration(delay); err == nil {
			a.wait = clampWait(wait)
		}
	}
	violations, _ := detail["violations"].([]any)
	for _, v := range violations {
		violation, _ := v.(map[string]any)
		quota, _ := violation["quotaId"].(string)
		a.daily = a.daily || strings.Contains(quota, "PerDay")
	}
}
