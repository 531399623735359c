// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/workspace/protocol"
)

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
