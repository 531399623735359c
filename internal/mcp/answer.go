// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
)

// Methods of the messages whose answers are checked.
const (
	methodCall   = "tools/call"
	methodCancel = "notifications/cancelled"
)

// methodOf is the method of the message that is posted; empty if there is none.
func methodOf(r *http.Request) string {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	var message struct {
		Method string `json:"method"`
	}
	_ = json.NewDecoder(body).Decode(&message) // It has no method, if that fails.
	return message.Method
}

// checkAnswer lets a call of a tool fail alone if its HTTP answer is not of the protocol, such as the page of a proxy.
// The protocol's library ends the session because of such an answer, and all other calls of the session with it. It
// only continues after an error of the transport. The client handles redirects, and the library events of streams.
func checkAnswer(method string, response *http.Response) error {
	status := response.StatusCode
	switch {
	case status >= http.StatusBadRequest:
		return checkRefusal(response)
	case status >= http.StatusMultipleChoices || method == methodCancel:
		return nil
	}
	switch kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case err != nil:
		return errNoProtocol
	case kind == "text/event-stream":
		return nil
	case kind == "application/json":
		_, err := readMessage(response)
		return err
	}
	return errNoProtocol
}

// checkRefusal returns an error unless the answer has an error of the protocol. The library does not read the body of
// answers whose status can pass.
func checkRefusal(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return statusFailure(response.StatusCode)
	}
	if answer, _ := readMessage(response); answer == nil || answer.Error == nil {
		return statusFailure(response.StatusCode)
	}
	return nil
}

// readMessage reads the message in a body, and leaves the body as it was. The response is nil if the message is another
// one.
func readMessage(response *http.Response) (*jsonrpc.Response, error) {
	body, err := io.ReadAll(response.Body)
	if oversized, ok := errors.AsType[*httpguard.OversizedError](err); ok {
		return nil, oversized
	} else if err != nil {
		return nil, fail(v1beta1.MCPResponseInvalid, "its answer ended too early")
	}
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil, errNoProtocol
	}
	_ = response.Body.Close() // All of it is read.
	response.Body = io.NopCloser(bytes.NewReader(body))
	answer, _ := message.(*jsonrpc.Response)
	return answer, nil
}

// errNoProtocol is an answer that is no message of the protocol.
var errNoProtocol = fail(v1beta1.MCPResponseInvalid, "its answer is not of the Model Context Protocol")

// statusFailure is an answer with the status of an error.
func statusFailure(status int) *failure {
	reason := v1beta1.MCPConnectionFailed
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		reason = v1beta1.MCPAccessDenied
	}
	return fail(reason, "it answered %d %s", status, http.StatusText(status))
}
