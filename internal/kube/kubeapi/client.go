// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi asks the API server as service accounts: each request goes there with a token of the account that it
// is made for, and with no other credentials. Redirects are not followed, and what is read is bounded.
package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/kube/startup"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/netguard/httpguard"
)

const (
	// MaxAnswer is the most bytes that are read of an answer: 8 MiB. An object has at most 3 MiB, and a page of a list is
	// bounded by its caller.
	MaxAnswer = 8 << 20
	// maxStatus is the most that is read of an error.
	maxStatus = 64 << 10
	// timeout bounds one request. Whoever watches a call takes a minute of silence for its end.
	timeout = 30 * time.Second
)

// TokenSeconds is for how long tokens of service accounts are asked for: the least that API servers grant. They cannot
// be bound to the generation pod, which runs as another account.
const TokenSeconds = 600

// Client asks the API server. It is safe for concurrent use.
type Client struct {
	server *url.URL
	http   *http.Client
	agent  string
	// tokens are kept by account.
	tokens *tokencache.Cache
	kinds  kinds
}

// Mint asks for a token of a service account that is good at the API server. It says when the token expires.
type Mint func(ctx context.Context, account string) (token string, expires time.Time, err error)

// New returns a client for the API server that cfg names. Of cfg it takes no credentials.
func New(cfg *rest.Config, mint Mint, now func() time.Time) (*Client, error) {
	anonymous := rest.AnonymousClientConfig(cfg)
	anonymous.Wrap(startup.Transport)
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the API server: %w", err)
	}
	tls := cfg.CAFile != "" || len(cfg.CAData) > 0 || cfg.Insecure
	server, _, err := rest.DefaultServerURL(cfg.Host, "", schema.GroupVersion{}, tls)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	return &Client{
		server: server, http: &http.Client{Transport: transport, CheckRedirect: httpguard.Stay}, agent: "parley-generator",
		tokens: tokencache.New(tokencache.Mint(mint), now), kinds: kinds{now: now, known: map[string]*discovered{}},
	}, nil
}

// Request is one request.
type Request struct {
	// Method is GET by default.
	Method string
	// Path has the segments of the path, as they are.
	Path []string
	// Query has the parameters.
	Query url.Values
	// Accept is application/json by default.
	Accept string
	// Type is that of Body, if there is one.
	Type string
	Body []byte
}

// NoTokenError is that there is no token of the account.
type NoTokenError struct {
	Account string
	Err     error
}

// Error tells which account.
func (e *NoTokenError) Error() string {
	return fmt.Sprintf("getting a token of service account %s: %v", e.Account, e.Err)
}

// Unwrap is the API server's own error.
func (e *NoTokenError) Unwrap() error { return e.Err }

// OversizedError is an answer that is too large.
type OversizedError struct{}

// Error tells how much is read.
func (*OversizedError) Error() string {
	return fmt.Sprintf("the API server answers with more than %d MiB: ask for less", MaxAnswer>>20)
}

// Do makes a request as the service account, and returns the answer. Errors are the API server's own, as in package
// apierrors, *NoTokenError, or *OversizedError. A token that is refused is asked for once more.
func (c *Client) Do(ctx context.Context, account string, r Request) ([]byte, error) {
	answer, err := c.try(ctx, account, r)
	if apierrors.IsUnauthorized(err) {
		c.tokens.Forget(account)
		answer, err = c.try(ctx, account, r)
	}
	return answer, err
}

// Check is why there is no token of the account; nil if there is one.
func (c *Client) Check(ctx context.Context, account string) error {
	if _, err := c.tokens.Of(ctx, account); err != nil {
		return &NoTokenError{Account: account, Err: err}
	}
	return nil
}

func (c *Client) try(parent context.Context, account string, r Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	token, err := c.tokens.Of(ctx, account)
	if err != nil {
		return nil, &NoTokenError{Account: account, Err: err}
	}
	request, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return read(response)
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	to := *c.server
	escaped := make([]string, len(r.Path))
	for i, segment := range r.Path {
		if problems := content.IsPathSegmentName(segment); segment == "" || len(problems) > 0 {
			return nil, fmt.Errorf("%q cannot be part of a path", segment)
		}
		escaped[i] = url.PathEscape(segment)
	}
	to.RawPath = strings.TrimSuffix(to.EscapedPath(), "/") + "/" + strings.Join(escaped, "/")
	to.Path = strings.TrimSuffix(to.Path, "/") + "/" + strings.Join(r.Path, "/")
	to.RawQuery = r.Query.Encode()
	method, accept := r.Method, r.Accept
	if method == "" {
		method = http.MethodGet
	}
	if accept == "" {
		accept = "application/json"
	}
	request, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", c.agent)
	if r.Type != "" {
		request.Header.Set("Content-Type", r.Type)
	}
	return request, nil
}

// read reads an answer, or the error that it is.
func read(response *http.Response) ([]byte, error) {
	code := response.StatusCode
	if code >= http.StatusMultipleChoices && code < http.StatusBadRequest {
		return nil, fmt.Errorf("the API server redirects the request (%d), which is not followed", code)
	}
	most := int64(MaxAnswer)
	if code >= http.StatusBadRequest {
		most = maxStatus
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the API server's answer: %w", err)
	case code >= http.StatusBadRequest:
		return nil, refusal(code, body)
	case int64(len(body)) > most:
		return nil, &OversizedError{}
	}
	return body, nil
}

// refusal is the error that an answer is.
func refusal(code int, body []byte) error {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Status != metav1.StatusFailure {
		return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
	}
	if status.Code == 0 {
		status.Code = int32(code)
	}
	return &apierrors.StatusError{ErrStatus: status}
}
