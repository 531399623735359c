// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley.dev/parley/internal/gateway/page"
	"parley.dev/parley/test/kit/check"
)

// door is a server of which a test knows what it was asked for.
type door struct {
	*Server
	host    string
	handler http.Handler
	// reached is what got through to the operations, with the header that it came with.
	reached []string
	header  http.Header
	stream  func() (*http.Response, error)
}

func open(t *testing.T) *door {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	d := &door{host: listener.Addr().String()}
	d.Server, err = New(Config{Namespace: "demo", Chat: "triage",
		Operations: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			d.reached, d.header = append(d.reached, r.Method+" "+r.URL.Path), r.Header
		}),
		Streams: func(_ context.Context, at, last string) (*http.Response, error) {
			d.reached = append(d.reached, "stream "+at+" "+last)
			return d.stream()
		}}, listener)
	check.OK(t, err)
	d.handler = d.Handler()
	return d
}

// request changes a request before it is made.
type request func(*http.Request)

func header(name, value string) request { return func(r *http.Request) { r.Header.Set(name, value) } }

func (d *door) ask(method, path, body string, change ...request) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = d.host
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

// enter exchanges the code for the key.
func (d *door) enter(t *testing.T) request {
	t.Helper()
	w := d.ask("POST", "/ui/session", `{"code":"`+d.code+`"}`)
	var said map[string]string
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != http.StatusOK ||
		said["namespace"] != "demo" ||
		said["chat"] != "triage" {
		t.Fatalf("the exchange is answered with %d %s", w.Code, w.Body)
	}
	return header("Authorization", "Bearer "+said["key"])
}

const list = "/v1beta1/namespaces/demo/chats"

// Security (the page): cannot be opened again by the link after it was opened; nor does the browser ever see a token of
// the cluster.
func TestTheCodeOpensThePageOnce(t *testing.T) {
	d := open(t)
	if !strings.HasPrefix(d.URL(), "http://"+d.host+page.Path+"#code=") {
		t.Errorf("the link is %s", d.URL())
	}
	for name, body := range map[string]string{"another code": `{"code":"x"}`, "no code": `{}`, "no JSON": "code",
		"a large body": `{"code":"` + strings.Repeat("x", 4096) + `"}`} {
		if w := d.ask("POST", "/ui/session", body); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	key := d.enter(t)
	if w := d.ask("POST", "/ui/session", `{"code":"`+d.code+`"}`); w.Code != http.StatusForbidden ||
		!strings.Contains(w.Body.String(), "run kubectl chat ui again") {
		t.Errorf("a second exchange: %d %s", w.Code, w.Body)
	}
	if w := d.ask("GET", list, "", key); w.Code != http.StatusOK || len(d.reached) != 1 {
		t.Errorf("with the key: %d %s, %v", w.Code, w.Body, d.reached)
	}
	check.Equal(t, "the operations were shown", "", d.header.Get("Authorization"))
}

// Security (the page): cannot, by another page in the same browser or a name that leads to this machine, ask the server
// of kubectl chat ui for anything.
func TestOnlyThePageOfThisServerIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		change       []request
		want         int
	}{
		"without a key": {"GET", list, nil, http.StatusUnauthorized},
		"with the code": {"GET", list, []request{header("Authorization", "Bearer code")}, http.StatusUnauthorized},
		"under its name": {"GET", "/ui/", []request{func(r *http.Request) {
			r.Host = strings.Replace(r.Host, "127.0.0.1",
				"localhost", 1)
		}}, http.StatusOK},
		"under another one": {"GET", "/ui/", []request{func(r *http.Request) { r.Host = "evil.example" }},
			http.StatusMisdirectedRequest},
		"at another port": {"GET", "/ui/", []request{func(r *http.Request) { r.Host = "127.0.0.1:1" }},
			http.StatusMisdirectedRequest},
		"from another origin": {"POST", "/ui/session", []request{header("Origin", "https://evil.example")},
			http.StatusForbidden},
		"from an origin that has none": {"POST", "/ui/session", []request{header("Origin", "null")}, http.StatusForbidden},
		"from another site": {"GET", "/ui/js/app.js", []request{header("Sec-Fetch-Site", "cross-site")},
			http.StatusForbidden},
		"from another port": {"GET", list, []request{header("Sec-Fetch-Site", "same-site")}, http.StatusForbidden},
		"opened by a link": {"GET", "/ui/", []request{header("Sec-Fetch-Site", "cross-site"),
			header("Sec-Fetch-Mode", "navigate")}, http.StatusOK},
		"an operation opened by a link": {"GET", list, []request{header("Sec-Fetch-Site", "cross-site"),
			header("Sec-Fetch-Mode", "navigate")}, http.StatusForbidden},
		"a path beside the page": {"GET", "/metrics", nil, http.StatusNotFound},
	} {
		d := open(t)
		if w := d.ask(c.method, c.path, `{"code":"`+d.code+`"}`, c.change...); w.Code != c.want || len(d.reached) > 0 ||
			d.opened.Load() {
			t.Errorf("%s: %d %.80s, reached %v", name, w.Code, w.Body, d.reached)
		}
	}
}

func TestAStreamIsHandedOnAsItComes(t *testing.T) {
	d := open(t)
	d.stream = func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTooManyRequests, Body: io.NopCloser(strings.NewReader("data")),
			Header: http.Header{"Retry-After": {"7"}, "Set-Cookie": {"a=b"}, "Content-Type": {"text/event-stream"}}}, nil
	}
	key := d.enter(t)
	w := d.ask("GET", list+"/c/stream?last=5", "", key, header("Last-Event-ID", "x.1.0.1"))
	h := w.Header()
	if w.Code != http.StatusTooManyRequests || w.Body.String() != "data" || h.Get("Retry-After") != "7" ||
		h.Get("Set-Cookie") != "" || h.Get("Content-Security-Policy") == "" ||
		d.reached[0] != "stream "+list+"/c/stream?last=5 x.1.0.1" {
		t.Errorf("%d %s %v, reached %v", w.Code, w.Body, h, d.reached)
	}
	d.stream = func() (*http.Response, error) { return nil, errors.New("no gateway pod is ready") }
	if w := d.ask("GET", list+"?watch", "", key); w.Code != http.StatusBadGateway ||
		!strings.Contains(w.Body.String(), "no gateway pod is ready") {
		t.Errorf("without a gateway: %d %s", w.Code, w.Body)
	}
}

func TestThePageIsServedToThisMachineAlone(t *testing.T) {
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	check.OK(t, err)
	defer func() { _ = listener.Close() }()
	if _, err := New(Config{}, listener); err == nil {
		t.Error("it is served to all")
	}
}
