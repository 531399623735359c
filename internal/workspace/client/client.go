// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client asks the agent of one workspace for what internal/workspace/protocol says.
//
// What answers is not trusted: commands of a model run beside it. So no answer is read beyond its bounds or waited for
// beyond its time, no redirect is followed, no cookie kept, nothing is decompressed, and ids and offsets are checked
// before they are used. Refusals, commands and what is known of processes come without what terminals act on; contents
// of files, their names and output are exact. Requests use no proxy of the environment.
//
// An error is one of: a *protocol.Error, which is the agent's refusal; one that is ErrUnreachable, when nobody answered
// or an answer broke off; ErrGone, when the pod is gone that was to answer; an *AnswerError, when what answered does
// not speak the protocol; or that of the caller's context. A request that cannot do harm twice is made again for a
// while when nobody answers: an agent that crashed is back within a second, and its commands run on meanwhile.
package client

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// dialTimeout is how long the connection may take: pods are near.
	dialTimeout = 5 * time.Second
	// maxHeaderBytes is the most that the headers of an answer may have: 64 KiB. Go's own limit is 10 MiB.
	maxHeaderBytes = 64 << 10
)

// Options of a Client. Address, Chat and Token are required.
type Options struct {
	// Address of the workspace's pod: an IP address or a name.
	Address string
	// Port that its agent listens on; default: protocol.Port.
	Port int
	// Chat is the UID of the root of the family that the workspace belongs to.
	Chat string
	// Pod is the UID of the workspace's pod, for who remembers what was said there.
	Pod string
	// Token returns the token for one request. It is called for each of them, and what it returns is not kept. The token
	// must be good for this agent alone: it is shown to whatever answers there.
	Token func(ctx context.Context) (string, error)
	// Gone reports whether the pod is gone for good. It is asked while nobody answers, at most every 2 s; nil: nobody
	// knows.
	Gone func(ctx context.Context) bool
	// Transport carries the requests; clients may share one of NewTransport. Default: one of its own.
	Transport http.RoundTripper
	// Timeout bounds a request with all its tries, besides what it waits for. Default: 30 s.
	Timeout time.Duration
	// Pauses between tries of a request that nobody answers; after the last one the request has failed.
	// Default: 24 s in all.
	Pauses []time.Duration
}

// Client asks one agent. It is safe for concurrent use.
type Client struct {
	agent *agent

	mu sync.Mutex
	// directory of the workspace; empty while it is not known.
	directory string
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
	port := cmp.Or(o.Port, protocol.Port)
	return &Client{agent: &agent{
		options: o,
		pod:     pod{ask: o.Gone},
		base:    "http://" + net.JoinHostPort(o.Address, strconv.Itoa(port)),
		http: &http.Client{
			Transport: o.Transport,
			// An agent sends nobody elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}}
}

// Place names what the client speaks to: the chat, and the pod of its workspace.
func (c *Client) Place() (chat, pod string) { return c.agent.options.Chat, c.agent.options.Pod }

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

// Close gives idle connections back.
func (c *Client) Close() { c.agent.http.CloseIdleConnections() }

// Healthy asks whether the agent is at work.
func (c *Client) Healthy(ctx context.Context) error {
	_, err := c.agent.do(ctx, request{method: http.MethodGet, path: "/v1/health", anonymous: true})
	return err
}

// Bind says that the workspace belongs to the family of the client's chat. The refusal of one that belongs to another
// is protocol.BoundToAnother.
func (c *Client) Bind(ctx context.Context) error {
	r := request{method: http.MethodPut, path: "/v1/binding"}
	return c.agent.json(ctx, r, protocol.Binding{Chat: c.agent.options.Chat}, nil)
}

// Info asks what the workspace is.
func (c *Client) Info(ctx context.Context) (*protocol.Info, error) {
	var info protocol.Info
	if err := c.agent.json(ctx, request{method: http.MethodGet, path: "/v1/info"}, nil, &info); err != nil {
		return nil, err
	}
	for _, text := range []*string{&info.OS, &info.Arch, &info.Directory, &info.Shell} {
		*text = line(*text)
	}
	return &info, nil
}
