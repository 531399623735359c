// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// trip is a transport that notes what it was given.
type trip struct{ given *http.Request }

func (t *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	t.given = r
	return httptest.NewRecorder().Result(), nil
}

// unreadable is a body that nobody may look at.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (unreadable) Close() error { return nil }

func TestARequestWithoutURLsIsHandedOnAsItIs(t *testing.T) {
	var next trip
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://models.example.com/v1", unreadable{t})
	response, err := urlTransport{&next, chatForm}.RoundTrip(request)
	if err != nil || next.given != request {
		t.Errorf("got %p, want %p: %v", next.given, request, err)
	}
	_ = response.Body.Close()
}

func TestARequestWithURLsCanBeSentAgain(t *testing.T) {
	var next trip
	p := protocols["chat"]
	body := fmt.Sprintf(p.turn, fmt.Sprintf(p.file, standIn))
	ctx := withURLs(t.Context(), standIns{standIn: fileAt})
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "https://models.example.com/v1",
		strings.NewReader(body))
	response, err := urlTransport{&next, p.form}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	again, err := next.given.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := io.ReadAll(next.given.Body)
	second, _ := io.ReadAll(again)
	if !bytes.Equal(first, second) || int64(len(first)) != next.given.ContentLength ||
		!bytes.Contains(first, []byte(fileAt)) || request.ContentLength != int64(len(body)) {
		t.Errorf("sent %s, again %s", first, second)
	}
}
