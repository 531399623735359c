// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish is the generator's side of the relay: it sends the parts of an attempt over the unix socket that
// the two share.
//
// Publishing never fails the attempt and never waits for the relay: a part goes into memory, and one stream per episode
// carries it on, as fast as the relay takes it. What was sent is kept until the episode is closed, so that a relay that
// was restarted gets all of it again, under the same numbers.
package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/stream/relay"
)

// ErrExists means that the attempt was begun by another incarnation of the generator, or is over: it must not be made
// again.
var ErrExists = relay.ErrExists

// Client sends to the relay of one pod. It is safe for concurrent use.
type Client struct {
	incarnation string
	http        *http.Client
	dial        func(context.Context) (net.Conn, error)
	now         func() time.Time
	// live is how many episodes are open.
	live atomic.Int64
}

// New makes a client of the relay that listens on the unix socket. The incarnation tells this life of the generator
// from earlier ones, so that an attempt that was interrupted by a crash is recognised: take a new one at each start.
// now returns the current time.
func New(socket, incarnation string, now func() time.Time) *Client {
	var dialer net.Dialer
	dial := func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "unix", socket) }
	return &Client{incarnation: incarnation, now: now, dial: dial, http: &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression:  true,
		MaxIdleConnsPerHost: 32,
	}, CheckRedirect: httpguard.Stay}}
}

// Await waits until the relay listens, or ctx is done. The first attempt of a pod waits for a relay that is starting.
func (c *Client) Await(ctx context.Context) error {
	conn, err := retry.Do(ctx, retry.RelayStart, c.dial)
	if err != nil {
		return fmt.Errorf("waiting for the relay: %w", err)
	}
	return conn.Close()
}

// Open opens an episode. It fails with ErrExists if another incarnation has opened it, or if it is over.
func (c *Client) Open(ctx context.Context, ep fence.Fence) (*Episode, error) {
	last, err := c.open(ctx, ep)
	if err != nil {
		return nil, fmt.Errorf("opening episode %s: %w", ep, err)
	}
	//nolint:contextcheck // an episode lives until it is closed, longer than the call that opens it
	return newEpisode(c, ep, last), nil
}

// Close ends an episode that this incarnation has not opened, such as one that an earlier one left behind.
func (c *Client) Close(ctx context.Context, ep fence.Fence) error {
	if err := c.post(ctx, ep, "/close", nil, http.StatusNoContent, nil); err != nil {
		return fmt.Errorf("closing episode %s: %w", ep, err)
	}
	return nil
}

// SoFar reads the parts of an episode that an earlier incarnation left behind; there are none if the relay has
// forgotten it.
func (c *Client) SoFar(ctx context.Context, ep fence.Fence) ([]parts.Frame, error) {
	req, err := c.request(ctx, http.MethodGet, ep, "", nil)
	if err != nil {
		return nil, fmt.Errorf("reading episode %s: %w", ep, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading episode %s: %w", ep, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading episode %s: the relay answered %s", ep, resp.Status)
	}
	var frames []parts.Frame
	for lines := json.NewDecoder(io.LimitReader(resp.Body, 2*relay.DefaultEpisodeBytes)); ; {
		var frame parts.Frame
		if err := lines.Decode(&frame); errors.Is(err, io.EOF) {
			return frames, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading episode %s: %w", ep, err)
		}
		frames = append(frames, frame)
	}
}

// CloseIdleConnections drops the connections that carry nothing.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

func (c *Client) open(ctx context.Context, ep fence.Fence) (int64, error) {
	req, err := c.request(ctx, http.MethodPut, ep, "", nil)
	if err != nil {
		return 0, err
	}
	var opened relay.Opened
	err = c.do(req, &opened, http.StatusOK, http.StatusCreated)
	return opened.LastSeq, err
}

func (c *Client) post(ctx context.Context, ep fence.Fence, what string, body io.Reader, status int, into any) error {
	req, err := c.request(ctx, http.MethodPost, ep, what, body)
	if err != nil {
		return err
	}
	return c.do(req, into, status)
}

func (c *Client) request(ctx context.Context, method string, ep fence.Fence, what string,
	body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://relay/v1/episodes/"+ep.String()+what, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(relay.IncarnationHeader, c.incarnation)
	if body != nil {
		req.Header.Set("Content-Type", relay.FrameMediaType)
	}
	return req, nil
}

func (c *Client) do(req *http.Request, into any, accepted ...int) error {
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("reading the relay's answer: %w", err)
	}
	for _, status := range accepted {
		if resp.StatusCode == status {
			if into == nil {
				return nil
			}
			return json.Unmarshal(body, into)
		}
	}
	return refusal(resp, body)
}

// refusal is the error that an answer stands for.
func refusal(resp *http.Response, body []byte) error {
	switch resp.StatusCode {
	case http.StatusConflict:
		return ErrExists
	case http.StatusNotFound:
		return relay.ErrUnknown
	default:
		return fmt.Errorf("the relay answered %s: %s", resp.Status, bytes.TrimSpace(body))
	}
}

// final says that trying again leads nowhere.
func final(err error) bool { return errors.Is(err, ErrExists) }
