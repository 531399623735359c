// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// promises begins a request whose body is as large as it may be, sends a piece of it of more than 4 KiB, and keeps the
// rest back until the test ends. It returns what the request is answered with.
func (c *compatible) promises(path, piece string) <-chan int {
	c.in.t.Helper()
	body, send := io.Pipe()
	answered := make(chan int, 1)
	r, err := http.NewRequestWithContext(c.in.t.Context(), http.MethodPost, c.in.url+path, body)
	check.OK(c.in.t, err)
	r.ContentLength = 16 << 20
	r.Header.Set("Authorization", "Bearer "+c.token)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(answered)
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			answered <- response.StatusCode
			_ = response.Body.Close() // It was answered.
		}
	}()
	c.in.t.Cleanup(func() { _ = send.CloseWithError(io.ErrUnexpectedEOF); <-ended })
	_, _ = send.Write([]byte(piece)) // or it is refused by now
	return answered
}

// TestBodiesThatDoNotComeTakeNobodysRoom lets somebody promise more than the gateway reads of all at the same time.
//
// Security (a client of OpenAI's protocols): cannot delay others by bodies that are announced and do not arrive, arrive
// slowly, or are large. Also TestCallerIsLimitedToHalfOfBodyMemory of internal/gateway;
// TestSlowRequestBodyTimesOutWithoutBlockingOthers of test/gateway.
func TestBodiesThatDoNotComeTakeNobodysRoom(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna, bob := in.user("anna"), in.user("bob")
	answers := make(chan int, 9)
	for i := range cap(answers) { // One more than she may have under way.
		path, said := "/responses", `{"input":`
		if i%2 == 0 {
			path, said = "/chat/completions", `{"messages":`
		}
		answer := anna.promises(anna.base()+path, said+strings.Repeat(" ", 8<<10))
		go func() { answers <- <-answer }()
	}
	if status := <-answers; status != http.StatusTooManyRequests {
		t.Errorf("one too many is answered with %d", status)
	}
	const unknown = `{"input": "x", "model": "none"}`
	if got := bob.does("POST", bob.base()+"/responses", unknown); got.code(t) != "model_not_found" {
		t.Errorf("bob gets %d %s", got.status, got.body)
	}
}

// TestCallerIsLimitedToHalfOfBodyMemory lets somebody send nearly all of bodies and keep the end of each
// back.
func TestCallerIsLimitedToHalfOfBodyMemory(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna, bob := in.user("anna"), in.user("bob")
	most := strings.Repeat(" ", 10<<20)
	first := anna.promises(anna.base()+"/responses", most)
	second := anna.promises(anna.base()+"/responses", most)
	var status int
	select {
	case status = <-first:
	case status = <-second:
	}
	check.Equal(t, "the status", http.StatusTooManyRequests, status)
	large := strings.Repeat(" ", 12<<20) + `{"input": "x", "model": "none"}`
	if got := bob.does("POST", bob.base()+"/responses", large); got.code(t) != "model_not_found" {
		t.Errorf("bob gets %d %s", got.status, got.body)
	}
}
