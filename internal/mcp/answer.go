// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
)

// Methods of the messages whose answers are checked.
const (
	methodCall   = "tools/call"
	methodCancel = "notifications/cancelled"
)

// eventStream is the media type of a stream of events.
const eventStream = "text/event-stream"

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
	switch kindOf(response) {
	case eventStream:
		return nil
	case "application/json":
		_, err := readMessage(response)
		return err
	}
	return errNoProtocol
}

// kindOf is the media type of an answer; empty if it has no valid one.
func kindOf(response *http.Response) string {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
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

// resumption notes why the stream of a call was not resumed. It is in the context of the call, the only thing that a
// request to resume a stream has of it.
type resumption struct{ refusal atomic.Pointer[failure] }

type resumptionKey struct{}

func withResumption(ctx context.Context) (context.Context, *resumption) {
	r := &resumption{}
	return context.WithValue(ctx, resumptionKey{}, r), r
}

// resumptionOf is that of the call whose stream the request resumes; nil if it is another request.
func resumptionOf(request *http.Request) *resumption {
	if request.Method != http.MethodGet {
		return nil
	}
	r, _ := request.Context().Value(resumptionKey{}).(*resumption)
	return r
}

// check makes an empty stream of an answer that is not the rest of the stream. That ends the call: the library would
// end the session because of a refusal.
func (r *resumption) check(response *http.Response) {
	refusal := errNoProtocol
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		refusal = statusFailure(response.StatusCode)
	case kindOf(response) == eventStream:
		return
	}
	_ = response.Body.Close() // It is not used.
	r.refusal.Store(refusal)
	response.StatusCode, response.Body = http.StatusOK, http.NoBody
}

// answerTo is the answer to a request that failed. Other errors than those of the host may pass, and the library tries
// to resume the stream again.
func answerTo(request *http.Request, err error) (*http.Response, error) {
	if refusal, resumed := hostFailure(err, nil), resumptionOf(request); refusal != nil && resumed != nil {
		resumed.refusal.Store(refusal)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
	}
	return nil, err
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
