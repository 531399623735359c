// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subscribe is the gateway's side of the relay: it reads the frames of one episode as they come.
//
// A stream that ends without an error is a whole episode: everything that the relay will ever have of it was yielded.
// Every other end is an error, after which the caller subscribes again behind the last frame that it has seen.
package subscribe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/netguard/httpguard"
)

const (
	// silence is after how long without a byte a relay is taken for dead: three heartbeats.
	silence = 45 * time.Second
	// maxLine bounds one frame: the relay keeps no longer ones.
	maxLine = 2 << 20
	// lineBuffer is what a subscription reads into: a frame has some hundred bytes, and the buffer grows for others.
	lineBuffer = 2 << 10
	// maxStream bounds the bytes of one subscription: four times what a relay keeps of an episode.
	// Heartbeats are one byte each.
	maxStream = 4 << 20
)

// ErrSilent means that a relay that should have sent a heartbeat sent nothing.
var ErrSilent = errors.New("the relay sent nothing, not even a heartbeat")

// ErrRefused means that the relay does not let this reader in: a person has to put the configuration right.
var ErrRefused = errors.New("the relay does not accept the gateway's token")

// ErrTooLong means that what calls itself a relay sends more than an episode can hold.
var ErrTooLong = errors.New("the relay sent more than an episode holds")

// TokenSource returns the bearer token for one request. It must be good for that relay alone: it is shown to whatever
// answers there.
type TokenSource func(context.Context) (string, error)

// Client subscribes to relays. It is safe for concurrent use.
type Client struct {
	// HTTP client to use; it must not have a timeout of its own. Redirects are never followed.
	HTTP *http.Client
	// Token proves to the relay who is reading.
	Token TokenSource
	// Silence after which a relay is taken for dead, default 45 s.
	Silence time.Duration
}

// Subscribe yields the frames of an episode behind number after, from the relay at baseURL (http://ADDRESS:PORT). It
// waits for an episode that does not exist yet. An error is the last thing that it yields.
func (c *Client) Subscribe(ctx context.Context, baseURL string, ep fence.Fence, after int64) iter.Seq2[parts.Frame,
	error] {
	return func(yield func(parts.Frame, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		watchdog := time.AfterFunc(c.silence(), func() { cancel(ErrSilent) })
		defer watchdog.Stop()
		body, err := c.connect(ctx, fmt.Sprintf("%s/v1/episodes/%s?after=%d", baseURL, ep, after))
		if err != nil {
			yield(parts.Frame{}, because(ctx, fmt.Errorf("subscribing to episode %s: %w", ep, err)))
			return
		}
		defer body.Close()
		alive := func() { watchdog.Reset(c.silence()) }
		if err := read(body, alive, func(f parts.Frame) bool { return yield(f, nil) }); err != nil {
			yield(parts.Frame{}, because(ctx, fmt.Errorf("reading episode %s: %w", ep, err)))
		}
	}
}

func (c *Client) connect(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	token, err := c.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("getting the token: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	client := *c.HTTP
	client.CheckRedirect = httpguard.Stay // A relay sends nobody elsewhere.
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // only to say more in the error
		err := fmt.Errorf("the relay answered %s: %s", resp.Status, bytes.TrimSpace(answer))
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return nil, err
	}
	return resp.Body, nil
}

// read hands over frames until the episode is over, which is no error, or yield wants no more.
func read(body io.Reader, alive func(), yield func(parts.Frame) bool) error {
	bounded := &io.LimitedReader{R: body, N: maxStream}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(make([]byte, 0, lineBuffer), maxLine)
	for lines.Scan() {
		alive()
		if len(lines.Bytes()) == 0 {
			continue
		}
		var line struct {
			parts.Frame
			Closed bool `json:"closed"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			if bounded.N == 0 { // It was cut.
				return ErrTooLong
			}
			return fmt.Errorf("decoding frame: %w", err)
		}
		if line.Closed || !yield(line.Frame) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if bounded.N == 0 {
		return ErrTooLong
	}
	return io.ErrUnexpectedEOF
}

// because prefers the reason why a context was cancelled over the bare fact.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

func (c *Client) silence() time.Duration {
	if c.Silence == 0 {
		return silence
	}
	return c.Silence
}
