// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subscribe is the gateway's side of the relay: it reads the frames of one episode as they come.
//
// A stream that ends without an error has yielded the whole episode. After an error, the caller subscribes again behind
// the last frame that it has.
package subscribe

import (
	"bufio"
	"bytes"
	"cmp"
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
	// silence is how long a relay may send nothing: three heartbeats.
	silence = 45 * time.Second
	// maxLine bounds one frame: the relay keeps no longer ones.
	maxLine = 2 << 20
	// lineBuffer is the first size of the buffer of a subscription: a frame has some hundred bytes.
	lineBuffer = 2 << 10
	// maxStream bounds the bytes of one subscription: four times what a relay keeps of an episode. A heartbeat is a byte.
	maxStream = 4 << 20
)

// ErrSilent means that a relay that should have sent a heartbeat sent nothing.
var ErrSilent = errors.New("the relay sent nothing, not even a heartbeat")

// ErrRefused means that the relay does not authorize the gateway: the configuration is wrong.
var ErrRefused = errors.New("the relay does not accept the gateway's token")

// ErrTooLong means that the relay sends more than an episode can have.
var ErrTooLong = errors.New("the relay sent more than an episode holds")

// Client subscribes to relays. It is safe for concurrent use.
type Client struct {
	// HTTP client to use; it must not have a timeout of its own. Redirects are never followed.
	HTTP *http.Client
	// Token returns the bearer token for one request. It must be valid for that relay only, since any server may answer at
	// its address.
	Token func(context.Context) (string, error)
	// Silence is how long a relay may send nothing, default 45 s.
	Silence time.Duration
}

// Subscribe yields the frames of an episode behind number after, from the relay at baseURL (http://ADDRESS:PORT). It
// waits for an episode that does not exist yet. An error is the last thing that it yields.
func (c *Client) Subscribe(ctx context.Context, baseURL string, ep fence.Fence, after int64) iter.Seq2[parts.Frame,
	error] {
	return func(yield func(parts.Frame, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		wait := cmp.Or(c.Silence, silence)
		watchdog := time.AfterFunc(wait, func() { cancel(ErrSilent) })
		defer watchdog.Stop()
		body, err := c.connect(ctx, fmt.Sprintf("%s/v1/episodes/%s?after=%d", baseURL, ep, after))
		if err != nil {
			yield(parts.Frame{}, because(ctx, fmt.Errorf("subscribing to episode %s: %w", ep, err)))
			return
		}
		defer body.Close()
		alive := func() { watchdog.Reset(wait) }
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
	client.CheckRedirect = httpguard.Stay // A relay does not redirect.
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

// read yields frames until the episode is over, which is no error, or yield returns false.
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
			if bounded.N == 0 { // The line was truncated.
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

// because adds the cause of a cancelled context to an error.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
