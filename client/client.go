// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client talks to chats by the gateway: it follows their streams (docs/stream.md) and does what people do with
// chats (docs/gateway.md). It needs a token and no Kubernetes client.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
)

// Client is a way to a gateway as somebody. Its fields do not change while it is used; its methods may be called by
// several goroutines.
type Client struct {
	// URL of the gateway, such as https://chats.example.com. Over plain HTTP others can read the token on the way: that is
	// for ports of this machine.
	URL string
	// Token is the token to show. It is asked for before each request, so that it may return another one once the last one
	// has expired. nil: HTTP shows one.
	Token func(ctx context.Context) (string, error)
	// HTTP makes the requests. Redirects are not followed, whatever it says: they would show the token to somebody else.
	// It has no Timeout, which would cut streams. Default: one with http.DefaultTransport.
	HTTP *http.Client
	// Reopen looks for another way to the gateway before a lost stream is opened again. It may change URL, Token and HTTP
	// of the client that it is given, which is a copy. lost is why: an *Error with status 401 where the token is not good
	// any more. If it fails, the old way is tried again, unless the token is refused. nil: there is no other way.
	Reopen func(ctx context.Context, way *Client, lost error) error
}

// Namespace is where chats are.
type Namespace struct {
	client *Client
	name   string
}

// Namespace is a namespace by its name.
func (c *Client) Namespace(name string) Namespace { return Namespace{client: c, name: name} }

// path is that of something in the namespace: words alternate between what is written as it is and names of objects.
func (n Namespace) path(words ...string) (string, error) {
	words = append([]string{n.name}, words...)
	for i := 0; i < len(words); i += 2 {
		if problems := validation.IsDNS1123Subdomain(words[i]); len(problems) > 0 {
			return "", fmt.Errorf("%q is not the name of an object: %s", words[i], problems[0])
		}
	}
	return "/v1alpha1/namespaces/" + strings.Join(words, "/"), nil
}

// do makes a request and reads its answer, both as JSON. A nil in has no body, and a nil out is not read.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, operationTimeout)
		defer cancel()
	}
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	request, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	response, err := c.http().Do(request)
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return refusal(response)
	}
	if err := decode(response.Body, out); err != nil {
		return fmt.Errorf("reading the answer of the gateway: %w", err)
	}
	return nil
}

// decode reads an answer; a nil out is none.
func decode(body io.Reader, out any) error {
	if out == nil {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxAnswer:
		return errors.New("it is longer than 64 MiB")
	}
	return json.Unmarshal(raw, out)
}

// request shows the token to the gateway alone.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request,
	error) {
	at := strings.TrimSuffix(c.URL, "/") + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != nil {
		token, err := c.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding a token for the gateway: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, nil
}

func (c *Client) http() *http.Client {
	made := http.Client{}
	if c.HTTP != nil {
		made = *c.HTTP
	}
	made.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &made
}
