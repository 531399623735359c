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
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// requestTimeout is the default of Options.Timeout.
	requestTimeout = 30 * time.Second
	// maxAnswerBytes is the most that is read of an answer in JSON: 8 MiB, twice what a request may have.
	maxAnswerBytes = 2 * protocol.MaxRequestBytes
)

// pauses are the default of Options.Pauses.
var pauses = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
	1500 * time.Millisecond, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second,
	3 * time.Second, 3 * time.Second,
}

// agent makes requests of the agent of the workspace.
type agent struct {
	options Options
	base    string
	http    *http.Client
	pod     pod
}

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
	// partly takes the first most bytes of an answer that is longer, which would else be none that agents give.
	partly bool
	// wait is how long the answer may take besides Options.Timeout.
	wait time.Duration
	// once is for what would be done twice if it was asked for twice.
	once bool
	// anonymous needs no token.
	anonymous bool
}

// answer is what came of a request.
type answer struct {
	header http.Header
	body   []byte
}

// json makes a request with a body in JSON, if there is one, and decodes the answer, if it is of use.
func (a *agent) json(ctx context.Context, r request, body, into any) error {
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding a request to the workspace: %w", err)
		}
		if len(raw) > protocol.MaxRequestBytes {
			return &protocol.Error{Code: protocol.TooLarge, Message: fmt.Sprintf(
				"the request has %d bytes, and %d are the most: ask for less at once", len(raw), protocol.MaxRequestBytes)}
		}
		r.body = raw
	}
	got, err := a.do(ctx, r)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(got.body, into); err != nil {
		return &AnswerError{Status: http.StatusOK, Problem: "not the JSON that agents answer with"}
	}
	return nil
}

// do makes a request, again while it may be and nobody answers.
func (a *agent) do(ctx context.Context, r request) (*answer, error) {
	return retry(ctx, a, r, func(ctx context.Context) (*answer, error) { return a.try(ctx, r) })
}

// retry tries a request again while it may be and nobody answers.
func retry[T any](ctx context.Context, a *agent, r request, try func(context.Context) (*T, error)) (*T, error) {
	bounded, cancel := context.WithTimeout(ctx, a.options.Timeout+r.wait)
	defer cancel()
	asking, stop := context.WithCancelCause(bounded)
	looking := a.pod.lookOut(asking, stop, r.wait)
	defer looking.end()
	for pauses := a.options.Pauses; ; pauses = pauses[1:] {
		got, err := try(asking)
		if err == nil {
			return got, nil
		}
		asked := time.Duration(0)
		busy, isBusy := errors.AsType[*busyError](err)
		if isBusy {
			err, asked = busy.error, busy.after
		}
		if errors.Is(err, ErrUnreachable) {
			looking.unanswered()
		}
		passes := isBusy || errors.Is(err, ErrUnreachable)
		if r.once || !passes || len(pauses) == 0 || !rest(asking, cmp.Or(asked, pauses[0])) {
			return nil, a.pod.final(ctx, asking, err)
		}
	}
}

// rest pauses, and reports whether there is time left then.
func rest(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// try makes a request once.
func (a *agent) try(ctx context.Context, r request) (*answer, error) {
	prepared, err := a.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	response, err := a.http.Do(prepared)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer response.Body.Close()
	good := response.StatusCode >= 200 && response.StatusCode < 300
	most := int64(maxRefusalBytes)
	if good {
		most = cmp.Or(r.most, maxAnswerBytes)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if !good { // Half a refusal is one, too.
		return nil, refusal(response, body[:min(int64(len(body)), most)])
	}
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

// prepare is the request as it is sent.
func (a *agent) prepare(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	target := a.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	prepared, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("making a request to the workspace: %w", err)
	}
	if r.body != nil {
		prepared.Header.Set("Content-Type", cmp.Or(r.bodyType, "application/json"))
	}
	if r.key != "" {
		prepared.Header.Set(protocol.HeaderCall, r.key)
	}
	if r.anonymous {
		return prepared, nil
	}
	token, err := a.options.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("getting a token for the workspace: %w", err)
	}
	prepared.Header.Set("Authorization", "Bearer "+token)
	prepared.Header.Set(protocol.HeaderChat, a.options.Chat)
	return prepared, nil
}
