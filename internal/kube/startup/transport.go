// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// retrySeconds is the pause before a retry. The API server itself waits for up to a second before it refuses.
	retrySeconds = 1
	// maxStatus is how much of an answer is read to find out whether it is such a refusal.
	maxStatus = 64 << 10
)

// Transport returns the refusals that IsRefusal recognizes as 503 with Retry-After, and all other answers as they are.
// client-go then retries the request 10 times, and what is left counts as an API server in trouble, not as a denial.
// Use it with rest.Config.Wrap.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil || !isRefusalCode(answer.StatusCode) {
		return answer, err // A transport changes no errors.
	}
	start, err := io.ReadAll(io.LimitReader(answer.Body, maxStatus))
	if err != nil {
		_ = answer.Body.Close() // The error is reported already.
		return nil, fmt.Errorf("reading the API server's refusal: %w", err)
	}
	var status metav1.Status
	if json.Unmarshal(start, &status) == nil && isRefusal(status) {
		return retryLater(answer, status)
	}
	answer.Body = body{io.MultiReader(bytes.NewReader(start), answer.Body), answer.Body}
	return answer, nil
}

// body is read from one place and closed at another.
type body struct {
	io.Reader
	io.Closer
}

// retryLater makes the refusal one that is retried.
func retryLater(answer *http.Response, status metav1.Status) (*http.Response, error) {
	status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	status.Message += " (the API server is starting: try again)"
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = retrySeconds
	text, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the API server's refusal: %w", err)
	}
	answer.StatusCode, answer.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
	answer.Header.Set("Retry-After", strconv.Itoa(retrySeconds))
	answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
	answer.ContentLength = int64(len(text))
	answer.Body = body{bytes.NewReader(text), answer.Body}
	return answer, nil
}
