// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/workspace/protocol"
)

// maxAnswerBytes is the most that is read of an answer in JSON: twice what a request may have.
const maxAnswerBytes = 2 * protocol.MaxRequestBytes

// request is one request to an agent.
type request struct {
	method, path string
	query        url.Values
	// key of the call that changes files.
	key  string
	body []byte
	// bodyType is its media type; default: that of JSON.
	bodyType string
	// most is how many bytes the answer may have; default: maxAnswerBytes.
	most int64
	// partly cuts an answer that is longer than most, which is an error otherwise.
	partly bool
	// wait is how long the answer may take in addition to Options.Timeout.
	wait time.Duration
	// once is for requests that must not be repeated.
	once bool
	// anonymous needs no token.
	anonymous bool
}

// answer is the answer to a request.
type answer struct {
	header http.Header
	body   []byte
}

// send sends a request with a body in JSON, if there is one, and decodes the answer.
func send[T any](ctx context.Context, c *Client, r request, body any) (*T, error) {
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding a request to the workspace: %w", err)
		}
		if len(raw) > protocol.MaxRequestBytes {
			return nil, &protocol.Error{Code: protocol.TooLarge, Message: fmt.Sprintf(
				"the request has %d bytes, and %d are the most: ask for less at once", len(raw), protocol.MaxRequestBytes)}
		}
		r.body = raw
	}
	got, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	var value T
	if err := json.Unmarshal(got.body, &value); err != nil {
		return nil, &AnswerError{Status: http.StatusOK, Problem: "not the JSON that agents answer with"}
	}
	return &value, nil
}

// do sends a request, and repeats it while that is possible and there is no answer.
func (c *Client) do(ctx context.Context, r request) (*answer, error) {
	return repeat(ctx, c, r, func(ctx context.Context) (*answer, error) { return c.try(ctx, r) })
}

// repeat tries a request until it has an answer, is not to be repeated, or fails too often.
func repeat[T any](ctx context.Context, c *Client, r request, try func(context.Context) (*T, error)) (*T, error) {
	if c.pod.gone.Load() {
		return nil, ErrGone
	}
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout+r.wait)
	defer cancel()
	asking, stop := context.WithCancelCause(bounded)
	failed := make(chan struct{})
	reportFailure := sync.OnceFunc(func() { close(failed) })
	var watching sync.WaitGroup
	watching.Go(func() { c.pod.watch(asking, stop, min(r.wait, longPoll)+lateAfter, failed) })
	defer watching.Wait()
	defer stop(nil)
	for pauses := c.options.Pauses; ; pauses = pauses[1:] {
		got, err := try(asking)
		if err == nil {
			return got, nil
		}
		busy, isBusy := errors.AsType[*busyError](err)
		switch {
		case isBusy:
			err = busy.error
		case errors.Is(err, ErrUnreachable):
			reportFailure()
			busy = &busyError{}
		}
		if r.once || busy == nil || len(pauses) == 0 || retry.Sleep(asking, cmp.Or(busy.after, pauses[0])) != nil {
			return nil, c.pod.final(ctx, asking, err)
		}
	}
}

// try sends a request once.
func (c *Client) try(ctx context.Context, r request) (*answer, error) {
	prepared, err := c.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(prepared)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 300 {
		return nil, refusal(response)
	}
	most := cmp.Or(r.most, maxAnswerBytes)
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case int64(len(body)) > most && r.partly:
		body = body[:most]
	case int64(len(body)) > most:
		return nil, &AnswerError{Status: response.StatusCode, Problem: fmt.Sprintf("longer than %d bytes", most)}
	}
	return &answer{header: response.Header, body: body}, nil
}

// prepare makes the request of HTTP.
func (c *Client) prepare(ctx context.Context, r request) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	prepared, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("making a request to the workspace: %w", err)
	}
	if r.method != http.MethodGet {
		prepared.Header.Set("Content-Type", cmp.Or(r.bodyType, "application/json"))
	}
	if r.key != "" {
		prepared.Header.Set(protocol.HeaderCall, r.key)
	}
	if r.anonymous {
		return prepared, nil
	}
	token, err := c.options.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("getting a token for the workspace: %w", err)
	}
	prepared.Header.Set("Authorization", "Bearer "+token)
	prepared.Header.Set(protocol.HeaderChat, c.options.Chat)
	return prepared, nil
}
