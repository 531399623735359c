// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// event is one server-sent event.
type event struct {
	id, name string
	data     []byte
}

// jsonEvent is how an event is printed for programs.
type jsonEvent struct {
	Event string          `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

// refusedError is an answer of the gateway that another try would not change,
// unless it names a time to come back after.
type refusedError struct {
	status  int
	message string
	after   time.Duration
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the gateway refused (%d): %s", e.status, e.message)
}

// lines can be as long as a committed message of 1 MiB with its escapes.
const maxLine = 16 << 20

// reconnectAfter is the least wait before a lost stream is opened again,
// and reconnectWithin the longest that the gateway may ask for.
const (
	reconnectAfter  = time.Second
	reconnectWithin = time.Minute
)

// follow calls each for every event of a chat, until each says that it has had enough or ctx is done. A stream that is
// lost is resumed behind the last event that had an id, also if the gateway is too busy then. connected is called once
// the gateway has begun to answer.
func (g *gateway) follow(ctx context.Context, namespace, chat string, fromStart bool, connected func(),
	each func(event) (done bool, err error)) error {
	last, taken, begun := "", false, false
	if connected == nil {
		connected = func() {}
	}
	begin := func() {
		begun = true
		connected()
	}
	for {
		done, err := g.stream(ctx, namespace, chat, fromStart, &last, begin, each)
		if done || ctx.Err() != nil {
			return err
		}
		wait, refused := pause(err, begun)
		if refused != nil && (!taken || !g.renewed(ctx, refused)) {
			return err
		}
		taken = refused == nil
		select {
		case <-time.After(wait):
			g.reopen(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (g *gateway) stream(ctx context.Context, namespace, chat string, fromStart bool, last *string, connected func(),
	each func(event) (bool, error)) (bool, error) {
	at := fmt.Sprintf("%s/v1alpha1/namespaces/%s/chats/%s/stream", strings.TrimSuffix(g.url, "/"),
		url.PathEscape(namespace), url.PathEscape(chat))
	if !fromStart && *last == "" {
		at += "?from=now"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return true, fmt.Errorf("asking the gateway: %w", err)
	}
	if *last != "" {
		request.Header.Set("Last-Event-ID", *last)
	}
	response, err := g.http.Do(request)
	if err != nil {
		return final(err), fmt.Errorf("asking the gateway: %w", explained(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return false, refusal(response)
	}
	return readEvents(response.Body, func(e event) (bool, error) {
		if e.id != "" {
			*last = e.id
		}
		connected()
		return each(e)
	})
}

// pause returns how long to wait before a stream that ended like this is opened again,
// and the refusal if waiting does not end it.
func pause(err error, begun bool) (time.Duration, *refusedError) {
	refused, _ := errors.AsType[*refusedError](err)
	if refused != nil && refused.passes(begun) {
		return max(reconnectAfter, refused.after), nil
	}
	return reconnectAfter, refused
}

// passes reports whether a refusal is over after a while: a fault of the gateway, or, once a stream has begun, that the
// caller has too many.
func (e *refusedError) passes(begun bool) bool {
	return e.status >= http.StatusInternalServerError || begun && e.status == http.StatusTooManyRequests
}

// plainToTLS is how a server of Go answers who speaks plain HTTP to it but should speak TLS.
const plainToTLS = "Client sent an HTTP request to an HTTPS server."

// refusal reads why the gateway refused.
func refusal(response *http.Response) error {
	var body struct {
		Message string `json:"message"`
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	_ = json.Unmarshal(text, &body)
	refused := &refusedError{status: response.StatusCode,
		message: cmp.Or(body.Message, http.StatusText(response.StatusCode))}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		refused.after = min(time.Duration(seconds), reconnectWithin/time.Second) * time.Second
	}
	switch {
	case response.StatusCode/100 == 3:
		refused.message = "it sends callers elsewhere, where your token is not shown: name the gateway's own URL"
	case response.StatusCode == http.StatusBadRequest && strings.TrimSpace(string(text)) == plainToTLS:
		refused.message = "it speaks TLS: name the file with its CA with --gateway-ca, or its https:// URL with --gateway"
	}
	return refused
}

// final reports whether a request failed for a reason that another try would not change:
// what serves there is not who it should be.
func final(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	return unverified || errors.Is(err, http.ErrSchemeMismatch)
}

// explained says what to do about an error of the connection, where that is known.
func explained(err error) error {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("it speaks plain HTTP: leave --gateway-ca out, or name a URL that begins with http://: %w", err)
	}
	if final(err) {
		return fmt.Errorf("%w: --gateway-ca names the file with the CA of its certificate", err)
	}
	return err
}

func readEvents(body io.Reader, each func(event) (bool, error)) (bool, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var e event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = []byte(value)
		case "":
			if e.name != "" {
				if done, err := each(e); done || err != nil {
					return true, err
				}
			}
			e = event{}
		}
	}
	return false, lines.Err()
}
