// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/test/kit/check"
)

func TestInvalidAnswerFailsItsCallOnly(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	for name, c := range map[string]struct {
		status             int
		kind, body, reason string
	}{
		"forbidden":          {http.StatusForbidden, "text/html", "<html>", "it answered 403 Forbidden"},
		"unavailable":        {http.StatusServiceUnavailable, "text/plain", "later", "it answered 503 Service Unavailable"},
		"too many requests":  {http.StatusTooManyRequests, "application/json", `{"error":{"message":"m"}}`, "it answered 429"},
		"an error":           {http.StatusInternalServerError, "application/json", "null", "it answered 500"},
		"no such page":       {http.StatusNotFound, "text/html", "<html>", "it answered 404 Not Found"},
		"accepted":           {http.StatusAccepted, "", "", "not of the Model Context Protocol"},
		"a page":             {http.StatusOK, "text/html", "<html>", "not of the Model Context Protocol"},
		"other JSON":         {http.StatusOK, "application/json; charset=utf-8", `{"ok":true}`, "not of the Model Context Protocol"},
		"an invalid type":    {http.StatusOK, "application/json; charset", refusal, "not of the Model Context Protocol"},
		"too long JSON":      {http.StatusOK, "application/json", long, "its answer has more than"},
		"too long event":     {http.StatusOK, "text/event-stream", "data: " + long, "its answer has more than"},
		"an empty stream":    {http.StatusOK, "text/event-stream", "", "not of the Model Context Protocol"},
		"an error in JSON":   {http.StatusBadRequest, "application/json", refusal, "refused the call: no such city"},
		"an error, no event": {http.StatusBadRequest, "text/event-stream", refusal, "refused the call: no such city"},
		"an error, accepted": {http.StatusOK, "application/json", refusal, "refused the call: no such city"},
	} {
		t.Run(name, func(t *testing.T) {
			began, release := make(chan struct{}), make(chan struct{})
			o := offerEcho(t, func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				switch {
				case bytes.Contains(body, []byte(`"as":"slow"`)):
					close(began)
					<-release
				case bytes.Contains(body, []byte(`"as":"invalid"`)):
					w.Header().Set("Content-Type", c.kind)
					w.WriteHeader(c.status)
					fmt.Fprint(w, strings.Replace(c.body, "ID", idOf(body), 1))
					return true
				}
				return false
			})
			slow := make(chan ran, 1)
			go func() { slow <- run(t, o, "s__echo", `{"as":"slow"}`) }()
			<-began
			check.Contains(t, fmt.Sprint(run(t, o, "s__echo", `{"as":"invalid"}`).err), c.reason)
			returns(t, o, "s__echo", "{}", "done")
			close(release)
			check.OK(t, (<-slow).err)
		})
	}
}

func TestRefusedCancellationKeepsTheSession(t *testing.T) {
	began, refused := make(chan struct{}), make(chan struct{})
	o := offerEcho(t, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		switch {
		case bytes.Contains(body, []byte(`"as":"slow"`)):
			close(began)
			<-r.Context().Done()
		case bytes.Contains(body, []byte("notifications/cancelled")):
			w.WriteHeader(http.StatusForbidden)
			close(refused)
			return true
		}
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := o.Tools()[0].Run(ctx, callOf(`{"as":"slow"}`)); err == nil {
		t.Error("the call has a result")
	}
	<-refused
	returns(t, o, "s__echo", "{}", "done")
}

func TestRefusedResumptionFailsItsCallOnly(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		kind, want string
	}{
		"a refusal": {http.StatusForbidden, "text/plain", "it answered 403 Forbidden"},
		"a fault":   {http.StatusBadGateway, "text/html", "it answered 502 Bad Gateway"},
		"a page":    {http.StatusOK, "text/html", "not of the Model Context Protocol"},
		"not found": {http.StatusNotFound, "text/plain", "it answered 404 Not Found"},
		"a sign-in": {http.StatusFound, "text/html", "it redirects (302)"},
		"nothing":   {http.StatusOK, "text/event-stream", "not of the Model Context Protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			began, release := make(chan struct{}), make(chan struct{})
			o := offerEcho(t, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
				switch {
				case bytes.Contains(body, []byte(`"method":"initialize"`)):
					w.Header().Set("Mcp-Session-Id", "one")
				case bytes.Contains(body, []byte(`"as":"slow"`)):
					close(began)
					<-release
				case bytes.Contains(body, []byte(`"as":"interrupted"`)):
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "id: 1\nretry: 1\ndata:\n\nid: 2\ndata: {\"jsonrpc\"")
					return true
				case r.Header.Get("Last-Event-Id") != "":
					check.Equal(t, "last event", "1", r.Header.Get("Last-Event-Id"))
					w.Header().Set("Content-Type", c.kind)
					w.WriteHeader(c.status)
					return true
				}
				return false
			})
			slow := make(chan ran, 1)
			go func() { slow <- run(t, o, "s__echo", `{"as":"slow"}`) }()
			<-began
			check.Contains(t, fmt.Sprint(run(t, o, "s__echo", `{"as":"interrupted"}`).err), c.want)
			returns(t, o, "s__echo", "{}", "done")
			close(release)
			check.OK(t, (<-slow).err)
		})
	}
}

func TestEventsOfOtherProtocolsAreIgnored(t *testing.T) {
	for version, c := range versions {
		for _, event := range []string{"data: ping", "data: [DONE]", "data", "event: ping\ndata: 1", `data: {"ok":true}`,
			"id: 7", ": comment", "event: message", "data: {\r\ndata: \r"} {
			t.Run(version+" "+event, func(t *testing.T) {
				s := newServer()
				tool(s, "echo", says("done"))
				next := c.handler(s)
				entry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(noisyWriter{w, event + "\n\n"}, r)
				}))
				entry.Transport = c.transport
				servers, _ := newServers(t, nil)
				returns(t, offer(t, servers, entry), "s__echo", "{}", "done")
			})
		}
	}
}

func TestLastEventNeedsNoEmptyLine(t *testing.T) {
	for _, end := range []string{"", "\n", "\nid: 7", "\nretry: 5\n", "\r\n: comment"} {
		t.Run(fmt.Sprintf("%q", end), func(t *testing.T) {
			o := offerEcho(t, func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if !bytes.Contains(body, []byte(`"tools/call"`)) {
					return false
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: "+strings.Replace(refusal, "ID", idOf(body), 1)+end)
				return true
			})
			check.Contains(t, fmt.Sprint(run(t, o, "s__echo", "{}").err), "refused the call: no such city")
		})
	}
}

// noisyWriter writes an event before each of a stream.
type noisyWriter struct {
	http.ResponseWriter
	event string
}

func (w noisyWriter) Write(p []byte) (int, error) {
	if bytes.HasSuffix(p, []byte("\n\n")) {
		if _, err := io.WriteString(w.ResponseWriter, w.event); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w noisyWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// offerEcho is what a server with the tool echo offers. It answers each call with "done", unless intercept has answered
// the request.
func offerEcho(t *testing.T, intercept func(w http.ResponseWriter, r *http.Request, body []byte) bool) *mcp.Offer {
	t.Helper()
	server := echo()
	servers, _ := newServers(t, nil)
	return offer(t, servers, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !intercept(w, r, body) {
			server.ServeHTTP(w, r)
		}
	})))
}

// refusal is an error of the protocol for the request ID.
const refusal = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no such city"}}`

// idOf is the id of a request, as JSON.
func idOf(body []byte) string {
	_, after, _ := bytes.Cut(body, []byte(`"id":`))
	id, _, _ := bytes.Cut(after, []byte(","))
	return string(bytes.Trim(id, "}"))
}
