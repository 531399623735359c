// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/observe/redact"
	"parley.dev/parley/internal/netguard/httpguard"
)

// maxExchanges and maxHeaders are limits of the resource; bodyRoom is the limit of a body after redaction.
const maxExchanges, maxHeaders, bodyRoom = 8, 64, 100000

// RecordExchanges makes the client record the requests of recorded model calls.
func RecordExchanges(client *http.Client) *http.Client {
	return httpguard.Wrap(client, func(next http.RoundTripper) http.RoundTripper { return recordingTransport{next} })
}

type recordingTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t recordingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	rec, _ := r.Context().Value(recordingKey{}).(*recording)
	e := rec.beginExchange(r)
	response, err := t.next.RoundTrip(r)
	if e == nil {
		return response, err
	}
	e.noteResponse(response, err)
	if err == nil {
		response.Body = &recordedBody{response.Body, e}
	}
	return response, err
}

// exchange is an HTTP request and its response. The recording's mutex guards it. Copies share bodies, which only grow.
type exchange struct {
	recording                     *recording
	canceled                      func() error
	number                        int32
	method, url                   string
	requestHeader, responseHeader http.Header
	requestBody, responseBody     redact.Body
	statusCode                    int
	failure                       v1beta1.DebugFailure
	startedAt, headersAt, endedAt time.Time
}

// beginExchange begins to record a request; nil, if the call is not recorded or has made too many.
func (r *recording) beginExchange(request *http.Request) *exchange {
	if r == nil {
		return nil
	}
	e := &exchange{
		recording: r, canceled: request.Context().Err, method: request.Method, url: request.URL.String(),
		requestHeader: request.Header.Clone(), requestBody: readBody(request), startedAt: r.recorder.options.Now(),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.exchanges) == maxExchanges {
		return nil
	}
	r.exchanges = append(r.exchanges, e)
	e.number = int32(len(r.exchanges))
	return e
}

// readBody reads the beginning of a request's body. Those of model calls are in memory.
func readBody(r *http.Request) (body redact.Body) {
	if r.GetBody == nil {
		return body
	}
	from, err := r.GetBody()
	if err != nil {
		return body
	}
	defer func() { _ = from.Close() }()
	if body.Kept, err = io.ReadAll(io.LimitReader(from, v1beta1.MaxDebugBodyBytes)); err != nil {
		return redact.Body{}
	}
	body.Total = max(r.ContentLength, int64(len(body.Kept)))
	return body
}

// update changes the exchange under its lock.
func (e *exchange) update(change func(now time.Time)) {
	now := e.recording.recorder.options.Now()
	e.recording.mu.Lock()
	defer e.recording.mu.Unlock()
	change(now)
}

func (e *exchange) noteResponse(response *http.Response, err error) {
	e.update(func(now time.Time) {
		if err != nil {
			e.failure, e.endedAt = e.failureOr(v1beta1.DebugNoResponse), now
			return
		}
		e.statusCode, e.responseHeader, e.headersAt = response.StatusCode, response.Header.Clone(), now
	})
}

func (e *exchange) failureOr(otherwise v1beta1.DebugFailure) v1beta1.DebugFailure {
	if e.canceled() != nil {
		return v1beta1.DebugCanceled
	}
	return otherwise
}

// recordedBody records a response's body as it is read.
type recordedBody struct {
	io.ReadCloser
	exchange *exchange
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	e := b.exchange
	e.update(func(now time.Time) {
		body := &e.responseBody
		body.Total += int64(n)
		body.Kept = append(body.Kept, p[:min(n, v1beta1.MaxDebugBodyBytes-len(body.Kept))]...)
		if err == nil || !e.endedAt.IsZero() {
			return
		}
		e.endedAt = now
		if err != io.EOF {
			e.failure = e.failureOr(v1beta1.DebugIncomplete)
		}
	})
	return n, err
}

// Close implements io.Closer.
func (b *recordedBody) Close() error {
	b.exchange.update(func(now time.Time) {
		if b.exchange.endedAt.IsZero() {
			b.exchange.endedAt = now
		}
	})
	return b.ReadCloser.Close()
}

// record returns the exchange without secrets.
func (e *exchange) record(redactor redact.Redactor) v1beta1.DebugExchange {
	return v1beta1.DebugExchange{
		Number: e.number, Method: bound(e.method, 16), URL: bound(redactor.URL(e.url), 4096),
		RequestHeaders: headers(e.requestHeader, redactor), RequestBody: body(e.requestBody, redactor),
		StatusCode: int32(e.statusCode), ResponseHeaders: headers(e.responseHeader, redactor),
		ResponseBody: body(e.responseBody, redactor),
		Failure:      e.failure, StartedAt: metav1.NewMicroTime(e.startedAt),
		HeadersMilliseconds: since(e.startedAt, e.headersAt), DurationMilliseconds: since(e.startedAt, e.endedAt),
	}
}

func body(b redact.Body, redactor redact.Redactor) string {
	return strings.ToValidUTF8(redactor.Body(b, bodyRoom), "\uFFFD")
}

func headers(from http.Header, redactor redact.Redactor) []v1beta1.DebugHeader {
	var out []v1beta1.DebugHeader
	for name, values := range from {
		for _, value := range values {
			out = append(out, v1beta1.DebugHeader{Name: bound(redactor.Text(name), 256),
				Value: bound(redactor.Header(name, value), 1024)})
		}
	}
	slices.SortFunc(out, func(a, b v1beta1.DebugHeader) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) })
	return out[:min(len(out), maxHeaders)]
}

func since(from, until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return until.Sub(from).Milliseconds()
}
