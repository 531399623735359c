// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// answer is what the provider's own error says, as its protocol defines it.
type answer struct {
	// said is the error message.
	said string
	// names are the provider's names for the error (code, type, status), in small letters.
	names []string
	// number is an HTTP status that the error itself names; 0: none.
	number int
	// wait is how long the provider asks to wait; 0: it does not say.
	wait time.Duration
	// daily is whether the limit that was hit is one of a day.
	daily bool
}

// maxErrorBody is the longest body that is read: an error is short, and a long body is something else.
const maxErrorBody = 64 << 10

// decode reads the answer that came with an HTTP status, or as an event of a stream. Package wire writes the names of
// headers in small letters.
func decode(e *fantasy.ProviderError, from v1alpha1.ModelProvider) answer {
	if from == v1alpha1.ProviderGoogle {
		return decodeGoogle(e.ResponseBody)
	}
	a := decodeJSON(e.ResponseBody, from)
	kind, _, _ := strings.Cut(e.ResponseHeaders["x-amzn-errortype"], ":")
	a.name(kind)
	return a
}

// errorBody is what OpenAI, Anthropic and those who imitate them send.
type errorBody struct {
	// Error is an object, or with some servers the message itself.
	Error json.RawMessage `json:"error"`
	// Kind is the name that goes with an Error that is a message.
	Kind string `json:"error_type"`
	// Object is "error" where the fields stand beside it instead of within Error.
	Object string `json:"object"`
	errorFields
}

type errorFields struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
}

func decodeJSON(body []byte, from v1alpha1.ModelProvider) (a answer) {
	var b errorBody
	if len(body) > maxErrorBody || json.Unmarshal(body, &b) != nil {
		return a
	}
	var fields errorFields
	switch {
	case json.Unmarshal(b.Error, &a.said) == nil:
		a.name(b.Kind)
		return a
	case b.Error != nil:
		_ = json.Unmarshal(b.Error, &fields) // What does not fit stays empty.
	case b.Object == "error" || from == v1alpha1.ProviderBedrock:
		fields = b.errorFields
	}
	a.said = fields.Message
	a.name(fields.Type)
	a.code(fields.Code)
	return a
}

// code reads a name, or a number that is an HTTP status.
func (a *answer) code(raw json.RawMessage) {
	var name string
	var number int
	if json.Unmarshal(raw, &name) == nil {
		a.name(name)
	} else if json.Unmarshal(raw, &number) == nil && number >= http.StatusBadRequest && number <= 599 {
		a.number = number
	}
}

func (a *answer) empty() bool { return a.said == "" && len(a.names) == 0 }

func (a *answer) name(name string) {
	if name != "" {
		a.names = append(a.names, strings.ToLower(name))
	}
}

// decodeGoogle reads an error of Google's APIs, which can be the first of a list.
func decodeGoogle(body []byte) (a answer) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var b struct {
		Error struct {
			errorFields

			Status  string           `json:"status"`
			Details []map[string]any `json:"details"`
		} `json:"error"`
	}
	if len(body) > maxErrorBody || json.Unmarshal(body, &b) != nil {
		return a
	}
	a.said = b.Error.Message
	a.name(b.Error.Status)
	a.code(b.Error.Code)
	for _, detail := range b.Error.Details {
		a.detail(detail)
	}
	return a
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
