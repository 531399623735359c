// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
)

// Headers with the version of the protocol, and with the session.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// limits bound the answers of a server: an image of 512 KiB is 700 KiB of base64, and progress comes in many small
// events.
var limits = httpguard.Limits{Error: 64 << 10, Answer: 4 << 20, Event: 4 << 20, Stream: 64 << 20}

// foreignHostError is a request to another host than the server's, which would send it the headers.
type foreignHostError struct{ host string }

func (e *foreignHostError) Error() string {
	return fmt.Sprintf("the server points to another host, %s", e.host)
}

// wire sends requests to one server only, with its headers.
type wire struct {
	next http.RoundTripper
	// living ends with the session. The protocol's library waits without a limit for the answers to some requests.
	living  context.Context
	home    *url.URL
	headers http.Header
	// streamable is whether the transport is the one whose streams can be resumed. Then checkAnswer decides about the
	// answers to calls.
	streamable bool
	// status of the newest answer that was not checked; 0: there was none. Checked ones explain themselves.
	status atomic.Int32
	// version of the protocol that a session has; nil before that.
	version atomic.Pointer[string]
	// foreign is a request that was refused because of its host: the protocol's library does not always report it.
	foreign atomic.Pointer[foreignHostError]
}

// newWire returns the client of a session, and its wire. Requests end when living does.
func newWire(living context.Context, client *http.Client, home *url.URL, headers http.Header) (*http.Client, *wire) {
	w := &wire{living: living, home: home, headers: headers}
	guarded := httpguard.Guard(client, limits)
	return httpguard.Wrap(guarded, func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	}), w
}

// setVersion sets the version of the session, which later requests send.
func (w *wire) setVersion(version string) { w.version.Store(&version) }

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != w.home.Scheme || r.URL.Host != w.home.Host {
		return nil, w.refuseHost(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(w.living, cancel) //nolint:contextcheck // The session's, which ends the request, too.
	r = r.Clone(ctx)
	if version := w.version.Load(); version != nil && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, *version)
	}
	maps.Copy(r.Header, w.headers)
	response, err := w.next.RoundTrip(r)
	if err != nil {
		stop()
		cancel()
		return answerTo(r, err)
	}
	response.Body = &released{ReadCloser: response.Body, release: func() { stop(); cancel() }}
	if err := w.check(r, response); err != nil {
		_ = response.Body.Close() // What it has is not used.
		return nil, err
	}
	if response.StatusCode < http.StatusMultipleChoices && kindOf(response) == eventStream {
		response.Body = newEvents(response.Body, w.streamable)
	}
	return response, nil
}

// refuseHost notes a request to another host, which is not sent.
func (w *wire) refuseHost(r *http.Request) error {
	if r.Body != nil {
		_ = r.Body.Close() // It is not sent.
	}
	foreign := &foreignHostError{"one that cannot be shown"}
	if httpguard.Showable(r.URL.Host) {
		foreign.host = r.URL.Host
	}
	w.foreign.Store(foreign)
	return foreign
}

// check checks the answer to a call, or notes the status of another answer. A session that the server has ended is
// left to the protocol's library.
func (w *wire) check(r *http.Request, response *http.Response) error {
	method := ""
	if w.streamable {
		method = methodOf(r)
	}
	isEnd := response.StatusCode == http.StatusNotFound && r.Header.Get(sessionHeader) != ""
	switch resumed := resumptionOf(r); {
	case resumed != nil:
		resumed.check(response)
	case isEnd || method != methodCall && method != methodCancel:
		w.status.Store(int32(response.StatusCode)) // Three digits.
	default:
		return checkAnswer(method, response)
	}
	return nil
}

// released is a body whose request is released when it is closed.
type released struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (r *released) Close() error {
	defer r.release()
	return r.ReadCloser.Close()
}

// failure implements line.
func (w *wire) failure(_ context.Context, err error, notes *httpguard.Notes, secrets scrubber) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if f := hostFailure(err, w.foreign.Load()); f != nil {
		return f
	}
	if oversized := notes.Oversized(); oversized != nil {
		return fail(v1beta1.MCPResponseInvalid, "its answer has more than %d bytes", oversized.Limit)
	}
	status := int(w.status.Load())
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return statusFailure(status)
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut("it did not answer in time")
	case status >= http.StatusBadRequest:
		return statusFailure(status)
	}
	if words := networkProblem(err); words != "" {
		return fail(v1beta1.MCPConnectionFailed, "%s", words)
	}
	if message := serverMessage(err); message != "" {
		return fail(v1beta1.MCPResponseInvalid, "it answered: %s", scrubLine(message, secrets))
	}
	return errNoProtocol
}

// hostFailure is a failure because of the host of a request; nil if it is none.
func hostFailure(err error, foreign *foreignHostError) *failure {
	if redirect, ok := errors.AsType[*httpguard.RedirectError](err); ok {
		return fail(v1beta1.MCPHostForbidden,
			"it redirects (%d), which is not followed: name the url that it leads to", redirect.Status)
	}
	if _, ok := errors.AsType[*httpguard.ForbiddenHostError](err); ok {
		return fail(v1beta1.MCPHostForbidden, "its host is an address of the node or of the pod")
	}
	if foreign != nil {
		return fail(v1beta1.MCPHostForbidden, "%s", foreign)
	}
	return nil
}

// networkProblem describes a failed connection; empty if the error is another one.
func networkProblem(err error) string {
	var name *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var other net.Error
	switch {
	case errors.As(err, &name):
		return "the name of its host does not resolve"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "its host refuses the connection"
	case errors.As(err, &untrusted):
		return "its certificate is not trusted"
	case errors.As(err, &other):
		return "it cannot be reached"
	}
	return ""
}

// exact is a transport that keeps results of calls and definitions of tools as the server wrote them. The protocol's
// library rejects a result or a list because of one invalid part, and rounds large integers.
type exact struct {
	sdk.Transport
	// onVersion is called with the version of a session, which the library passes to its own connections only.
	onVersion func(version string)
}

// Connect implements sdk.Transport.
func (t exact) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &exactConnection{Connection: inner, onVersion: t.onVersion, methods: map[jsonrpc.ID]string{}}, nil
}

type exactConnection struct {
	sdk.Connection
	onVersion func(version string)

	mu sync.Mutex
	// methods are those of the pending requests.
	methods map[jsonrpc.ID]string
}

// Write implements sdk.Connection.
func (c *exactConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		c.mu.Lock()
		c.methods[request.ID] = request.Method
		c.mu.Unlock()
	}
	return c.Connection.Write(ctx, message)
}

// Read implements sdk.Connection.
func (c *exactConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if response, ok := message.(*jsonrpc.Response); ok && err == nil {
		c.keep(response)
	}
	return message, err
}

// keep replaces a result by one that the library can decode, with the original in its _meta.
func (c *exactConnection) keep(response *jsonrpc.Response) {
	c.mu.Lock()
	method := c.methods[response.ID]
	delete(c.methods, response.ID)
	c.mu.Unlock()
	if response.Error != nil {
		return
	}
	switch method {
	case "initialize":
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(response.Result, &result) == nil {
			c.onVersion(result.ProtocolVersion)
		}
	case "tools/call":
		response.Result = wrapResult(response.Result)
	case "tools/list":
		response.Result = wrapList(response.Result)
	}
}

// rawKey is the member of _meta with the JSON of the server.
const rawKey = "parley.dev/raw"

func meta(raw json.RawMessage) map[string]string { return map[string]string{rawKey: string(raw)} }

// raw is the JSON of the server.
func raw(m sdk.Meta) json.RawMessage {
	text, _ := m[rawKey].(string)
	return json.RawMessage(text)
}

// wrapResult keeps for the library only a server's request for input.
func wrapResult(result json.RawMessage) json.RawMessage {
	var r struct {
		ResultType    lenientText     `json:"resultType"`
		InputRequests json.RawMessage `json:"inputRequests,omitempty"`
		RequestState  json.RawMessage `json:"requestState,omitempty"`
	}
	wrapped := map[string]any{"content": []any{}, "_meta": meta(result)}
	if json.Unmarshal(result, &r) == nil && r.ResultType == "input_required" {
		wrapped["resultType"], wrapped["inputRequests"], wrapped["requestState"] = r.ResultType, r.InputRequests,
			r.RequestState
	}
	return encodeOr(wrapped, result)
}

// wrapList keeps for the library the name of a tool and the schema of its arguments, which determines headers.
func wrapList(result json.RawMessage) json.RawMessage {
	var list map[string]json.RawMessage
	var definitions []json.RawMessage
	if json.Unmarshal(result, &list) != nil || json.Unmarshal(list["tools"], &definitions) != nil {
		return result
	}
	wrapped := make([]map[string]any, len(definitions))
	for i, definition := range definitions {
		var tool struct {
			Name        lenientText     `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		_ = json.Unmarshal(definition, &tool) // define reports the error.
		wrapped[i] = map[string]any{"name": tool.Name, "inputSchema": tool.InputSchema, "_meta": meta(definition)}
	}
	list["tools"] = encodeOr(wrapped, list["tools"])
	return encodeOr(list, result)
}

// encodeOr encodes the value, or returns the fallback if that fails.
func encodeOr(value any, fallback json.RawMessage) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return fallback
	}
	return text
}
