// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parley.dev/parley/api/stream"
)

const (
	// MaxEvent is the most bytes of one event: 16 MiB, a committed message of 1 MiB with its escapes.
	MaxEvent = 16 << 20
	// maxSilence is how long a stream may say nothing: the gateway sends a comment every 15 s.
	maxSilence = time.Minute
)

var errSilent = errors.New("the gateway has said nothing for a minute")

// read makes the request and passes on what comes, until the stream ends or is silent for too long.
func (f *follower) read(request *http.Request, cancel context.CancelCauseFunc, take func(stream.Event) bool) error {
	silent := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silent.Stop()
	response, err := f.way.http().Do(request)
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	return events(response.Body, func(e stream.Event) error {
		if e.Name == "" { // Somebody is there.
			silent.Reset(maxSilence)
			return nil
		}
		silent.Stop() // Whoever takes the event may take their time.
		defer silent.Reset(maxSilence)
		f.begun, f.taken, f.pause = true, true, firstPause
		if e.ID != "" {
			f.last = e.ID
		}
		if !take(e) || e.Name == f.endsWith {
			return errOver
		}
		return nil
	})
}

// events reads server-sent events. A block that is no event, such as a comment, is passed on without a name. An event
// that the end of the stream cuts is dropped, and an event without an id inherits none. go-sse differs in all three.
func events(body io.Reader, each func(stream.Event) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), MaxEvent)
	var e stream.Event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			e.Data = []byte(value)
		case "":
			if lines.Text() != "" {
				continue // A comment belongs to no event.
			}
			if err := each(e); err != nil {
				return err
			}
			e = stream.Event{}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	return io.ErrUnexpectedEOF
}
