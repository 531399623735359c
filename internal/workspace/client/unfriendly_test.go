// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
)

// answering is a client of a server that answers so.
func answering(t *testing.T, with http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(with)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return client.New(fakeworkspace.OptionsOf(server.URL, fakeworkspace.Chat))
}

// raw is a client of a server that answers every connection with these bytes, and then closes it, or leaves it
// open for longer than the client waits.
func raw(t *testing.T, bytes string, open bool) *client.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, bytes)
				if open {
					<-t.Context().Done()
				}
			}()
		}
	}()
	o := fakeworkspace.OptionsOf("http://"+listener.Addr().String(), fakeworkspace.Chat)
	if open {
		o.Timeout = 300 * time.Millisecond
	}
	return client.New(o)
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestNonAgentResponseIsReportedAsSuch(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
				return
			}
		}
	}
	zipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(`{"id":"p1","state":"Running"}`))
		_ = z.Close()
	}
	for name, c := range map[string]struct {
		with http.HandlerFunc
		want string
	}{
		"a page": {say(404, "<html>\x1b[2JNot\r\nfound\u202e</html>"),
			"(404) is not one of an agent: <html> [2JNot found</html>"},
		"an error without code":  {say(500, `{"message":"boom"}`), `(500) is not one of an agent: {"message":"boom"}`},
		"garbage":                {say(200, "\x00\xff\xfe"), "not the JSON"},
		"nothing":                {say(200, ""), "not the JSON"},
		"no content":             {say(204, ""), "not the JSON"},
		"a list":                 {say(200, "[]"), "not the JSON"},
		"a number for a text":    {say(200, `{"id":7,"state":"Running"}`), "not the JSON"},
		"two values":             {say(200, `{"id":"p1","state":"Running"}{}`), "not the JSON"},
		"another object":         {say(200, `{"hello":"world"}`), "not about a process"},
		"an id that is a path":   {say(200, `{"id":"../../v1/info","state":"Running"}`), "not about a process"},
		"a state that is none":   {say(200, `{"id":"p1","state":"Exploded"}`), "not about a process"},
		"a body without an end":  {endless, "longer than"},
		"a body that is zipped":  {zipped, "not the JSON"},
		"an error without limit": {say(500, strings.Repeat("x", 1<<20)), "(500) is not one of an agent: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := answering(t, c.with).Process(t.Context(), "p1")
			strange, ok := errors.AsType[*client.AnswerError](err)
			if !ok || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			if len(strange.Text) > 400 {
				t.Errorf("told are %d bytes", len(strange.Text))
			}
		})
	}
}

// Security (a hostile workspace): cannot redirect a generation pod, nor the token, elsewhere.
func TestRedirectIsNotFollowed(t *testing.T) {
	var visits atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/secret", status)
		})
		_, err := c.Start(t.Context(), "k", protocol.StartRequest{Command: "true"})
		if _, ok := errors.AsType[*client.AnswerError](err); !ok || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", status, err)
		}
	}
	check.Equal(t, "redirects were followed", 0, visits.Load())
}

// Security (a hostile workspace): cannot hold a call longer than its limit, by silence, half an answer, or a request to
// wait. Also TestOnlyTemporaryRefusalsAreRepeated of internal/workspace/client.
func TestMissingOrIncompleteResponseIsUnreachable(t *testing.T) {
	const whole = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
	for name, c := range map[string]*client.Client{
		"refuses the connection":  client.New(fakeworkspace.OptionsOf("http://127.0.0.1:1", "c")),
		"closes it":               raw(t, "", false),
		"speaks another protocol": raw(t, "SSH-2.0-OpenSSH_9.9\r\n", false),
		"says half a header":      raw(t, "HTTP/1.1 200 OK\r\nContent-Le", false),
		"says half an answer":     raw(t, whole+`{"id":`, false),
		"says nothing":            raw(t, "", true),
		"stops within a header":   raw(t, "HTTP/1.1 200 OK\r\nContent-", true),
		"stops within a body":     raw(t, whole+`{"id":`, true),
		"has a huge header":       raw(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20), false),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.Process(t.Context(), "p1"); !errors.Is(err, client.ErrUnreachable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTemporarilyUnavailableAgentIsRetried(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{
		"it broke off": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		},
		"it is not ready": say(503, `{"code":"Internal","message":"starting"}`),
		"it has to pause": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(503)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			c := answering(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					first(w, r)
					return
				}
				_, _ = io.WriteString(w, `{"id":"p1","state":"Running"}`)
			})
			if p, err := c.Start(t.Context(), "k", protocol.StartRequest{Command: "true"}); err != nil || p.ID != "p1" {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
}

func TestOnlyTemporaryRefusalsAreRepeated(t *testing.T) {
	look := func(c *client.Client) error { _, err := c.Process(t.Context(), "p1"); return err }
	briefly := func(c *client.Client) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Process(ctx, "p1")
		return err
	}
	interrupt := func(c *client.Client) error { _, err := c.Signal(t.Context(), "p1", protocol.Interrupt); return err }
	for name, c := range map[string]struct {
		send             func(*client.Client) error
		status           int
		retryAfter, body string
		times            int32
		code             protocol.ErrorCode
	}{
		"busy":               {look, 503, "", `{"code":"Unavailable","message":"busy"}`, 3, protocol.Unavailable},
		"busy for long":      {briefly, 503, "86400", "", 1, ""}, // The pause is longer than the request may take.
		"busy, an interrupt": {interrupt, 503, "", "", 1, ""},
		"at a limit":         {look, 429, "1", `{"code":"TooMany","message":"100 commands run"}`, 1, protocol.TooMany},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int32
			asking := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				sent.Add(1)
				w.Header().Set("Retry-After", c.retryAfter)
				say(c.status, c.body)(w, nil)
			})
			if err := c.send(asking); err == nil || c.code != "" && !isCode(err, c.code) {
				t.Errorf("got %v", err)
			}
			check.Equal(t, "requests", c.times, sent.Load())
		})
	}
}

func TestARefusalIsDecodedAndCleaned(t *testing.T) {
	c := answering(t, say(403, `{"code":"Forbidden\u001b[31m","message":"no\u001b]0;x\u0007 `+strings.Repeat("x", 10_000)+`"}`))
	_, err := c.Process(t.Context(), "p1")
	refused, ok := errors.AsType[*protocol.Error](err)
	if !ok || refused.Code != "Forbidden [31m" || strings.ContainsAny(refused.Message, "\x1b\x07") ||
		len(refused.Message) > 5000 {
		t.Errorf("got %v", err)
	}
}

func TestOutputNotMatchingRequestedRangeIsRejected(t *testing.T) {
	for name, c := range map[string]struct{ from, total, body string }{
		"no offset":                    {"", "5", "hello"},
		"no total":                     {"3", "", "hello"},
		"a negative offset":            {"-1", "5", "hello"},
		"an offset that is no number":  {"x", "5", "hello"},
		"an offset beyond all numbers": {"9223372036854775807", "5", "hello"},
		"output from before":           {"1", "100", "hello"},
		"more than was asked for":      {"3", "100", strings.Repeat("x", 11)},
	} {
		t.Run(name, func(t *testing.T) {
			asking := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(protocol.HeaderOutputFrom, c.from)
				w.Header().Set(protocol.HeaderOutputTotal, c.total)
				_, _ = io.WriteString(w, c.body)
			})
			got, err := asking.Output(t.Context(), "p1", 3, 10, 0)
			if _, ok := errors.AsType[*client.AnswerError](err); !ok {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestNumbersOfAProcessAreMadeSense(t *testing.T) {
	c := answering(t, say(200, `{"id":"p1","state":"Exited","outputBytes":-5,"outputDropped":7,"note":"a\nb\u009b"}`))
	p, err := c.Process(t.Context(), "p1")
	if err != nil || p.OutputBytes != 0 || p.OutputDropped != 0 || p.Note != "a b" {
		t.Errorf("got %+v, %v", p, err)
	}
	many := strings.Repeat(`{"pid":-1,"command":"a\nb\u009b"},`, 20) + `{}`
	c = answering(t, say(200, `{"id":"p1","state":"Exited","descendants":{"count":-5,"first":[`+many+`]}}`))
	if p, err = c.Process(t.Context(), "p1"); err != nil || p.Descendants.Count != 10 || len(p.Descendants.First) != 10 ||
		p.Descendants.First[0].Command != "a b" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestTokenIsFetchedPerRequestAndErrorsReturned(t *testing.T) {
	var shown []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization")+" "+r.Header.Get(protocol.HeaderChat)+r.Header.Get("Cookie"))
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = io.WriteString(w, `{"id":"p1","state":"Running"}`)
	}))
	t.Cleanup(server.Close)
	o, n := fakeworkspace.OptionsOf(server.URL, "chat"), 0
	o.Token = func(context.Context) (string, error) {
		if n++; n > 2 {
			return "", errors.New("no more tokens")
		}
		return fmt.Sprint("t", n), nil
	}
	c := client.New(o)
	for range 2 {
		if _, err := c.Process(t.Context(), "p1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Process(t.Context(), "p1"); err == nil || !strings.Contains(err.Error(), "no more tokens") ||
		errors.Is(err, client.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	check.Equal(t, "shown were", "[Bearer t1 chat Bearer t2 chat]", fmt.Sprint(shown))
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	if client.NewTransport().Proxy != nil {
		t.Error("there is one") // Go's own never sends what goes to the loopback through one, so a request shows nothing.
	}
}
