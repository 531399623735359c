// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/internal/generation/provider/chatcompletions"
)

type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }

type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAnErrorWhoseBodyBreaksOffKeepsItsStatusAndHeaders(t *testing.T) {
	client := chatcompletions.Client(&http.Client{Transport: answering(func() *http.Response {
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"7"}},
			Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"error":"slow`), cutOff{})),
		}
	})})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://models.example/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "7" {
		t.Errorf("got %d with %v", response.StatusCode, response.Header)
	}
	if body, err := io.ReadAll(response.Body); string(body) != `{"error":"slow` || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the body is %s, %v", body, err)
	}
}
