// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client talks to chats by the gateway: it follows their streams (docs/reference/stream.md) and does what
// people do with chats (docs/reference/gateway.md). It needs a token and no Kubernetes client.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxAnswer is the most that is read of an answer: 64 MiB, a list of 500 chats with long titles many times over.
	maxAnswer = 64 << 20
	// maxRefusal is the most that is read of a refusal.
	maxRefusal = 64 << 10
	// operationTimeout bounds an operation whose caller sets no deadline: the gateway waits 20 s for a body and as long
	// for what becomes of a request.
	operationTimeout = time.Minute
	// maxRetryAfter is the longest delay that a gateway can ask for.
	maxRetryAfter = time.Minute
)

// Client calls a gateway with one identity. Its fields do not change while it is used; its methods may be called by
// several goroutines.
type Client struct {
	// URL of the gateway, such as https://chats.example.com. Over plain HTTP others can read the token on the way: that is
	// for ports of this machine.
	URL string
	// Token returns the token to show. It is called before each request, so that it may replace one that has expired.
	// nil: HTTP shows one.
	Token func(ctx context.Context) (string, error)
	// HTTP makes the requests. Redirects are never followed: they would show the token to another server. It has no
	// Timeout, which would cut streams. Default: one with http.DefaultTransport.
	HTTP *http.Client
	// Reopen finds another way to the gateway before a lost stream is opened again. It may change URL, Token and HTTP of
	// way, which is a copy. lost is the reason: an *Error with status 401 where the token is no longer valid. If Reopen
	// fails, the old way is tried again, unless the token is refused. nil: there is no other way.
	Reopen func(ctx context.Context, way *Client, lost error) error
}

// Namespace is the operations on the chats of a namespace.
type Namespace struct {
	client *Client
	name   string
}

// Namespace returns the operations on a namespace.
func (c *Client) Namespace(name string) Namespace { return Namespace{client: c, name: name} }

// path is a path in the namespace: words alternate between fixed words and names of objects.
func (n Namespace) path(words ...string) (string, error) {
	words = append([]string{n.name}, words...)
	for i := 0; i < len(words); i += 2 {
		if problems := validation.IsDNS1123Subdomain(words[i]); len(problems) > 0 {
			return "", fmt.Errorf("%q is not the name of an object: %s", words[i], problems[0])
		}
	}
	return "/v1beta1/namespaces/" + strings.Join(words, "/"), nil
}

// bounded gives a context a deadline, unless it has one.
func bounded(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, most)
}

// do makes a request and reads its answer, both as JSON. A nil in has no body, and a nil out is not read.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := bounded(ctx, operationTimeout)
	defer cancel()
	var body io.Reader
	header := http.Header{}
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
		body = bytes.NewReader(raw)
		header.Set("Content-Type", "application/json")
	}
	response, err := c.send(ctx, method, path, query, header, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if out == nil {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
	case len(raw) > maxAnswer:
		err = errors.New("it is longer than 64 MiB")
	default:
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return fmt.Errorf("reading the answer of the gateway: %w", err)
	}
	return nil
}

// send makes a request with the token, and fails with an *Error if the gateway refuses it.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, header http.Header, body io.Reader,
) (*http.Response, error) {
	at := strings.TrimSuffix(c.URL, "/") + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", err)
	}
	request.Header = header
	if c.Token != nil {
		token, err := c.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding a token for the gateway: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	var doer http.Client
	if c.HTTP != nil {
		doer = *c.HTTP
	}
	doer.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := doer.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", err)
	}
	if response.StatusCode/100 != 2 {
		defer func() { _ = response.Body.Close() }()
		return nil, refusal(response)
	}
	return response, nil
}

// Error is a refusal of the gateway. docs/reference/stream.md lists its own reasons; those of the API server are as
// with kubectl, such as AlreadyExists and Conflict.
type Error struct {
	// Status of the answer in HTTP.
	Status int
	// Reason is one CamelCase word; empty if the answer does not come from a gateway.
	Reason string
	// Message says what is wrong and what to do about it.
	Message string
	// RetryAfter is when the same request may succeed, at most a minute; 0 if the gateway does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("the gateway refused (%d): %s", e.Status, e.Message)
}

// SpeaksTLS is the message of a refusal by a server that expects TLS and was asked over plain HTTP.
const SpeaksTLS = "it speaks TLS: its URL begins with https://"

// plainToTLS is what a TLS server of Go answers to plain HTTP.
const plainToTLS = "Client sent an HTTP request to an HTTPS server."

func refusal(response *http.Response) *Error {
	var body struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // A part of it will do.
	_ = json.Unmarshal(text, &body)                                  // Only gateways answer with JSON.
	e := &Error{Status: response.StatusCode, Reason: body.Reason,
		Message: cmp.Or(body.Message, http.StatusText(response.StatusCode))}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = min(time.Duration(seconds), maxRetryAfter/time.Second) * time.Second
	}
	switch {
	case response.StatusCode/100 == 3:
		e.Message = "it sends callers elsewhere, where your token is not shown: name the gateway's own URL"
	case response.StatusCode == http.StatusBadRequest && strings.TrimSpace(string(text)) == plainToTLS:
		e.Message = SpeaksTLS
	}
	return e
}

// isTransient reports whether a later request may succeed: after a fault of the gateway, or, once a stream has started,
// when the caller has too many streams.
func (e *Error) isTransient(started bool) bool {
	return e.Status >= http.StatusInternalServerError || started && e.Status == http.StatusTooManyRequests
}

// isPermanent reports whether a retry would fail as well: the certificate is not trusted, or the server speaks no TLS.
func isPermanent(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	return unverified || errors.Is(err, http.ErrSchemeMismatch)
}
