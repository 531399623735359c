// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestRequestsReachTheOriginAsTheyAre(t *testing.T) {
	var got *http.Request
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(r.Context())
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s", body)
	}))
	defer origin.Close()
	target, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(Handler(target))
	defer proxy.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+"/v1/messages?beta=true",
		strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", "k")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if string(body) != "hello" || got.Host != target.Host || got.URL.String() != "/v1/messages?beta=true" ||
		got.Header.Get("X-Api-Key") != "k" {
		t.Errorf("got %s %s, host %s, headers %v, body %q", got.Method, got.URL, got.Host, got.Header, body)
	}
}

func TestProxyStreamsResponseBeforeItIsComplete(t *testing.T) {
	release := make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-release
		fmt.Fprintln(w, "second")
	}))
	defer origin.Close()
	target, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(Handler(target))
	defer proxy.Close()
	response, err := http.Get(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || lines.Text() != "first" {
		t.Fatalf("the first line is %q", lines.Text())
	}
	close(release)
	if !lines.Scan() || lines.Text() != "second" {
		t.Errorf("the second line is %q", lines.Text())
	}
}
