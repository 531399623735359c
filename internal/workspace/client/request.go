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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
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
		if r.once || busy == nil || len(pauses) == 0 || sleep(asking, cmp.Or(busy.after, pauses[0])) != nil {
			return nil, c.pod.final(ctx, asking, err)
		}
	}
}

// sleep pauses, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
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

const (
	// longPoll is how long an agent holds back the answer to a request that waits. Meanwhile an idle agent looks like
	// one that is gone.
	longPoll = 15 * time.Second
	// lateAfter is how much longer an answer takes until it is late.
	lateAfter = 3 * time.Second
	// comeback is how long an agent that closed the connection has to come back before the pod is checked.
	comeback = time.Second
	// gonePause is the least time between two checks of the pod, and goneTime bounds each.
	gonePause, goneTime = 2 * time.Second, 5 * time.Second
)

// pod knows whether the pod of the workspace is gone.
type pod struct {
	// isGone is Options.Gone.
	isGone func(ctx context.Context) bool
	// gone is its last result; checked is true for a moment after that.
	gone, checked atomic.Bool
}

// watch checks the pod from then on when an answer is late, or a try has failed. It stops the request with ErrGone.
func (p *pod) watch(ctx context.Context, stop context.CancelCauseFunc, late time.Duration, failed <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-time.After(late):
	case <-failed:
		_ = sleep(ctx, comeback)
	}
	for ctx.Err() == nil {
		if p.check(ctx) {
			stop(ErrGone)
		}
		_ = sleep(ctx, gonePause)
	}
}

// check reports whether the pod is gone. It shares the result of a check of a moment ago.
func (p *pod) check(ctx context.Context) bool {
	if p.isGone == nil || p.gone.Load() || p.checked.Swap(true) {
		return p.gone.Load()
	}
	time.AfterFunc(gonePause, func() { p.checked.Store(false) })
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	if p.isGone(ctx) {
		p.gone.Store(true) // No pod comes back.
	}
	return p.gone.Load()
}

// final is the error of a request that is not repeated. A server that refuses the token, or does not follow the
// protocol, may have the address of a pod that is gone.
func (p *pod) final(caller, asking context.Context, err error) error {
	refused, ok := errors.AsType[*protocol.Error](err)
	_, invalid := errors.AsType[*AnswerError](err)
	isOther := invalid || ok && refused.Code == protocol.Unauthenticated
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(context.Cause(asking), ErrGone), isOther && p.check(asking):
		return ErrGone
	}
	return err
}

// ErrUnreachable means that there is no complete answer. The request may have been carried out nevertheless.
var ErrUnreachable = errors.New("the workspace cannot be reached")

// ErrGone means that the pod is gone. The request may have been carried out nevertheless.
var ErrGone = errors.New("the pod of the workspace is gone")

// AnswerError is an answer that does not follow the protocol.
type AnswerError struct {
	// Status of HTTP.
	Status int
	// Problem is what is wrong with it.
	Problem string
	// Text is the beginning of the answer in one line.
	Text string
}

// Error implements error.
func (e *AnswerError) Error() string {
	text := fmt.Sprintf("the workspace's answer (%d) is %s", e.Status, e.Problem)
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

const (
	// maxRefusalBytes is the most that is read of a refusal.
	maxRefusalBytes = 64 << 10
	// maxMessage and maxShown bound what is kept of its texts.
	maxMessage = 4 << 10
	maxShown   = 300
	// maxRetryAfter is the longest pause that an agent may ask for.
	maxRetryAfter = 5 * time.Second
)

// busyError is a temporary refusal.
type busyError struct {
	error
	after time.Duration
}

// refusal reads the error of an answer. An incomplete one counts as well.
func refusal(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusalBytes))
	var err error = &AnswerError{
		Status: response.StatusCode, Problem: "not one of an agent", Text: clip.Ellipsis(line(string(body)), maxShown),
	}
	var refused protocol.Error
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		err = &AnswerError{Status: response.StatusCode, Problem: "a redirect, which is not followed"}
	case json.Unmarshal(body, &refused) == nil && refused.Code != "" && response.StatusCode >= http.StatusBadRequest:
		err = &protocol.Error{
			Code:    protocol.ErrorCode(clip.Runes(line(string(refused.Code)), 64)),
			Message: clip.Bytes(printable.Text(refused.Message), maxMessage),
		}
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		return &busyError{err, retryAfter(response.Header)}
	}
	return err
}

// retryAfter is the pause that an answer asks for; 0: none.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseInt(header.Get("Retry-After"), 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// line cleans a text of a workspace, and makes it one line.
func line(text string) string { return printable.Line(clip.Bytes(text, maxMessage)) }
