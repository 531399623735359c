// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"

	"charm.land/fantasy"
)

// maxErrorBody is the longest body that is read: an error is short, and a long body is something else.
const maxErrorBody = 64 << 10

// decodeError reads the error message and code from the body that the providers' protocols define; of anything else it
// takes nothing.
func decodeError(raw []byte) (said, code string) {
	var envelope struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	if len(raw) > maxErrorBody || json.Unmarshal(bodyOf(raw), &envelope) != nil {
		return "", ""
	}
	code, _ = envelope.Error.Code.(string)
	if code == "" {
		code = envelope.Error.Type
	}
	return envelope.Error.Message, code
}

// bodyOf takes the body out of a response, which some SDKs keep as it came over the wire: with its head, and in chunks.
func bodyOf(raw []byte) []byte {
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		return raw
	}
	defer func() { _ = response.Body.Close() }() // It is memory.
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	return body
}

// responsesCode is the code at the end of a message of an error within a stream of the responses protocol.
var responsesCode = regexp.MustCompile(`(?s)^(.*) \(code: ([A-Za-z0-9_]+)\)$`)

// decodeResponsesError reads the message and code of such an error, which fantasy has put into one text. fantasy uses the
// same type for faults of its own, which say nothing of the provider.
func decodeResponsesError(e *fantasy.Error) (said, code string) {
	if e.Title != "response failed" && e.Title != "response error" {
		return "", ""
	}
	if m := responsesCode.FindStringSubmatch(e.Message); m != nil {
		return m[1], m[2]
	}
	return e.Message, ""
}
