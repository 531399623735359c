// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish is the generator's side of the relay: it sends the parts of attempts over a unix socket.
//
// Publishing never fails the attempt and never waits for the relay. Parts are kept in memory until the episode is
// closed, and one stream per episode sends them. So a restarted relay gets all of them again, under the same numbers.
package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// ErrExists means that another incarnation of the generator began the attempt, or that it is over: it must not be made
// again.
var ErrExists = relay.ErrExists

// episodes is the URL of the relay's episodes.
const episodes = "http://relay/v1/episodes/"

// Client sends to the relay of one pod. It is safe for concurrent use.
type Client struct {
	incarnation string
	http        *http.Client
	dial        func(context.Context) (net.Conn, error)
	now         func() time.Time
	// live is how many episodes are open.
	live atomic.Int64
}

// New makes a client of the relay that listens on the unix socket. Each start of the generator has a new incarnation,
// by which an attempt that a crash interrupted is detected. now returns the current time.
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

// Close ends an episode, such as one of an earlier incarnation.
func (c *Client) Close(ctx context.Context, ep fence.Fence) error {
	if err := c.call(ctx, http.MethodPost, episodes+ep.String()+"/close", nil, nil); err != nil {
		return fmt.Errorf("closing episode %s: %w", ep, err)
	}
	return nil
}

// SoFar reads the parts of an episode of an earlier incarnation; there are none if the relay has forgotten it.
func (c *Client) SoFar(ctx context.Context, ep fence.Fence) (frames []parts.Frame, err error) {
	err = c.call(ctx, http.MethodGet, episodes+ep.String(), nil, func(body io.Reader) error {
		for lines := json.NewDecoder(io.LimitReader(body, 2*relay.DefaultEpisodeBytes)); ; {
			var frame parts.Frame
			if err := lines.Decode(&frame); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			frames = append(frames, frame)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading episode %s: %w", ep, err)
	}
	return frames, nil
}

// CloseIdleConnections closes the connections without requests.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

func (c *Client) open(ctx context.Context, ep fence.Fence) (int64, error) {
	var opened relay.Opened
	err := c.call(ctx, http.MethodPut, episodes+ep.String(), nil, func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(&opened)
	})
	return opened.LastSeq, err
}

// maxAnswer bounds an answer of the relay.
const maxAnswer = 4 << 10

// call makes a request, and reads its answer by read; nil: the answer is not read.
func (c *Client) call(ctx context.Context, method, url string, body io.Reader, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	req.Header.Set(relay.IncarnationHeader, c.incarnation)
	req.Header.Set("Content-Type", relay.FrameMediaType)
	// The transport repeats requests with this key, which it does not send, if the relay closes the connection before it
	// answers. The relay takes each request twice, but for a stream of parts, which cannot be read again.
	req.Header["Idempotency-Key"] = nil
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch status := resp.StatusCode; {
	case status == http.StatusConflict:
		return ErrExists
	case status == http.StatusNotFound:
		return relay.ErrUnknown
	case status >= http.StatusMultipleChoices:
		message, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // only to say more in the error
		return fmt.Errorf("the relay answered %s: %s", resp.Status, bytes.TrimSpace(message))
	case read != nil:
		return read(resp.Body)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // So that the connection can be used again.
	return err
}

// KeepKeys sends the relay the key set of the cluster's issuer when it needs that, until ctx is done. fetch gets the
// set from the API server. The relay needs it at its start, once an hour while there are readers, and for an unknown
// key.
func (c *Client) KeepKeys(ctx context.Context, fetch func(context.Context) ([]byte, error), log *slog.Logger) {
	_ = c.Await(ctx) // Readers wait for the keys of a relay that starts with the generator. ctx ends this.
	pauses := retry.RelayKeys.Start()
	for ctx.Err() == nil {
		err := c.sendKeys(ctx, fetch)
		if err == nil {
			pauses.Reset()
			continue
		}
		log.DebugContext(ctx, "the relay did not get the issuer's keys", "error", err)
		_ = pauses.Wait(ctx, err) // The loop checks ctx.
	}
}

// sendKeys waits until keys are needed, and sends them once.
func (c *Client) sendKeys(ctx context.Context, fetch func(context.Context) ([]byte, error)) error {
	const keys = "http://relay/v1/keys"
	if err := c.call(ctx, http.MethodGet, keys+"/wanted", nil, nil); err != nil {
		return fmt.Errorf("waiting until keys are wanted: %w", err)
	}
	set, err := fetch(ctx)
	if err != nil {
		return fmt.Errorf("fetching the issuer's keys: %w", err)
	}
	if err := c.call(ctx, http.MethodPut, keys, bytes.NewReader(set), nil); err != nil {
		return fmt.Errorf("bring the relay the issuer's keys: %w", err)
	}
	return nil
}
