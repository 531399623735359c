// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client sends the requests of package protocol to the agent of one workspace.
//
// The answers are not trusted, because commands of a model run next to the agent. Sizes and times of answers are
// bounded, no redirect is followed, no cookie is kept, nothing is decompressed, and ids and offsets are checked before
// they are used. Refusals, commands and facts about processes are cleaned of terminal sequences. Contents of files,
// their names and output are exact. Requests use no proxy of the environment.
//
// An error is one of: a *protocol.Error, a refusal of the agent; ErrUnreachable, if there is no complete answer;
// ErrGone, if the pod is gone; an *AnswerError, if the answer does not follow the protocol; or that of the caller's
// context. Requests without an answer are repeated for a while, unless a repetition does harm: an agent that crashed is
// back within a second, and its commands continue.
package client

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// dialTimeout is how long the connection may take: pods are near.
	dialTimeout = 5 * time.Second
	// maxHeaderBytes bounds the headers of an answer. Go's own limit is 10 MiB.
	maxHeaderBytes = 64 << 10
	// requestTimeout is the default of Options.Timeout.
	requestTimeout = 30 * time.Second
)

// pauses are the default of Options.Pauses.
var pauses = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
	1500 * time.Millisecond, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second,
	3 * time.Second, 3 * time.Second,
}

// Options of a Client. Address, Chat and Token are required.
type Options struct {
	// Address of the workspace's pod: an IP address or a name.
	Address string
	// Port of its agent; default: protocol.Port.
	Port int
	// Chat is the UID of the root of the family that the workspace belongs to.
	Chat string
	// Pod is the UID of the workspace's pod.
	Pod string
	// Token returns the token for one request. It must be valid for this agent alone, because whatever answers sees it.
	Token func(ctx context.Context) (string, error)
	// Gone reports whether the pod is gone for good. It is called while there is no answer, at most every 2 s; nil: it is
	// not known.
	Gone func(ctx context.Context) bool
	// Transport carries the requests; clients may share one of NewTransport. Default: a new one.
	Transport http.RoundTripper
	// Timeout bounds a request with all its tries, in addition to its wait. Default: 30 s.
	Timeout time.Duration
	// Pauses between tries of a request; after the last one the request has failed. Default: 24 s in all.
	Pauses []time.Duration
}

// Client sends requests to one agent. It is safe for concurrent use.
type Client struct {
	options Options
	base    string
	http    *http.Client
	pod     pod
}

// New returns a client.
func New(o Options) *Client {
	if o.Transport == nil {
		o.Transport = NewTransport()
	}
	if o.Pauses == nil {
		o.Pauses = pauses
	}
	o.Timeout = cmp.Or(o.Timeout, requestTimeout)
	return &Client{
		options: o,
		pod:     pod{isGone: o.Gone},
		base:    "http://" + net.JoinHostPort(o.Address, strconv.Itoa(cmp.Or(o.Port, protocol.Port))),
		http: &http.Client{
			Transport:     o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Place returns the chat of the client, and the pod of its workspace.
func (c *Client) Place() (chat, pod string) { return c.options.Chat, c.options.Pod }

// NewTransport returns a transport for agents, which keeps connections open between requests.
func NewTransport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Healthy checks that the agent runs.
func (c *Client) Healthy(ctx context.Context) error {
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/health", anonymous: true})
	return err
}

// Bind binds the workspace to the family of the client's chat. The refusal of one that belongs to another family is
// protocol.BoundToAnother.
func (c *Client) Bind(ctx context.Context) error {
	binding := protocol.Binding{Chat: c.options.Chat}
	_, err := send[protocol.Binding](ctx, c, request{method: http.MethodPut, path: "/v1/binding"}, binding)
	return err
}

// Info describes the workspace.
func (c *Client) Info(ctx context.Context) (*protocol.Info, error) {
	info, err := send[protocol.Info](ctx, c, request{method: http.MethodGet, path: "/v1/info"}, nil)
	if err != nil {
		return nil, err
	}
	for _, text := range []*string{&info.OS, &info.Arch, &info.Directory, &info.Shell} {
		*text = line(*text)
	}
	return info, nil
}
