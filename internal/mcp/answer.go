// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley.dev/parley/api/v1beta1"
)

// callAnswers lets a call of a tool fail alone if its answer is not of the protocol, such as the page of a proxy. The
// protocol's library ends the session because of such an answer, and all other calls of the session with it. It only
// continues after an error of the transport.
type callAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper. The error is a *failure if an answer came.
func (a callAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(r)
	if err != nil || !callsTool(r) {
		return response, err
	}
	if err := checkAnswer(r, response); err != nil {
		_ = response.Body.Close() // What it has is not used.
		return nil, err
	}
	return response, nil
}

// callsTool reports whether the request is a call of a tool.
func callsTool(r *http.Request) bool {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	var message struct {
		Method string `json:"method"`
	}
	return json.NewDecoder(body).Decode(&message) == nil && message.Method == "tools/call"
}

// checkAnswer returns an error if the library cannot read the answer to a call. The client handles redirects, and the
// library sessions that the server has ended.
func checkAnswer(r *http.Request, response *http.Response) error {
	status := response.StatusCode
	switch {
	case status == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "":
		return nil
	case status >= http.StatusBadRequest:
		if answer, _ := readMessage(response); answer == nil || answer.Error == nil {
			return statusFailure(status)
		}
		return nil
	case status >= http.StatusMultipleChoices:
		return nil
	}
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind { // Without one, it is empty.
	case "text/event-stream":
		return nil
	case "application/json":
		_, err := readMessage(response)
		return err
	}
	return errNoProtocol
}

// readMessage reads the message in a body, and leaves the body as it was. The response is nil if the message is another
// one.
func readMessage(response *http.Response) (*jsonrpc.Response, error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer to a call: %w", err)
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
