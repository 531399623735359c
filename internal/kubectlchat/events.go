// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// event is one server-sent event.
type event struct {
	id, name string
	data     []byte
}

// refusedError is an answer of the gateway that another try would not change.
type refusedError struct {
	status  int
	message string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the gateway refused (%d): %s", e.status, e.message)
}

// lines can be as long as a committed message of 1 MiB with its escapes.
const maxLine = 16 << 20

// reconnectAfter is the wait before a lost stream is opened again.
const reconnectAfter = time.Second

// follow calls each for every event of a chat, until each says that it has had enough or ctx is done. A stream that is lost
// is resumed behind the last event that had an id. connected is called once the gateway has begun to answer.
func (g *gateway) follow(ctx context.Context, namespace, chat string, fromStart bool, connected func(), each func(event) (done bool, err error)) error {
	last := ""
	for {
		done, err := g.stream(ctx, namespace, chat, fromStart, &last, connected, each)
		if done || ctx.Err() != nil {
			return err
		}
		if _, refused := errors.AsType[*refusedError](err); refused {
			return err
		}
		select {
		case <-time.After(reconnectAfter):
			g.reopen(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (g *gateway) stream(ctx context.Context, namespace, chat string, fromStart bool, last *string, connected func(), each func(event) (bool, error)) (bool, error) {
	at := fmt.Sprintf("%s/v1alpha1/namespaces/%s/chats/%s/stream", strings.TrimSuffix(g.url, "/"), url.PathEscape(namespace), url.PathEscape(chat))
	if !fromStart && *last == "" {
		at += "?from=now"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return true, fmt.Errorf("asking the gateway: %w", err)
	}
	if *last != "" {
		request.Header.Set("Last-Event-ID", *last)
	}
	response, err := g.http.Do(request)
	if err != nil {
		return false, fmt.Errorf("asking the gateway: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return false, refusal(response)
	}
	return readEvents(response.Body, func(e event) (bool, error) {
		if e.id != "" {
			*last = e.id
		}
		if connected != nil {
			connected()
		}
		return each(e)
	})
}

// refusal reads why the gateway refused. A fault of its own passes.
func refusal(response *http.Response) error {
	var body struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&body)
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("the gateway failed (%d): %s", response.StatusCode, body.Message)
	}
	return &refusedError{status: response.StatusCode, message: body.Message}
}

func readEvents(body io.Reader, each func(event) (bool, error)) (bool, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var e event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = []byte(value)
		case "":
			if e.name != "" {
				if done, err := each(e); done || err != nil {
					return true, err
				}
			}
			e = event{}
		}
	}
	return false, lines.Err()
}
