// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"net"
	"net/http"
	"time"
)

// exchange is one request and its answer.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	dialect dialect
	request *request
	records *records
	record  *Record
	// out holds the events that were not sent yet.
	out *sse
	// begun is whether the header of a stream was sent.
	begun bool
	// sent is the number of parts that were sent.
	sent int
	// over is whether the answer was sent as far as the script wants it.
	over bool
}

func newExchange(w http.ResponseWriter, r *http.Request, d dialect, all *records, record *Record) *exchange {
	return &exchange{w: w, r: r, control: http.NewResponseController(w), dialect: d, records: all, record: record,
		out: newSSE()}
}

func (x *exchange) gone() bool { return x.r.Context().Err() != nil }

// end records the end. A client that goes away after the last byte has not gone away from the answer.
func (x *exchange) end() {
	x.records.change(func() {
		x.record.Ended, x.record.Parts, x.record.Aborted = time.Now(), x.sent, !x.over && x.gone()
	})
}

func (x *exchange) run(p *plan) {
	if p.fault != nil && x.failBefore(p) {
		return
	}
	events := x.dialect.stream(x.request, p, x.out)
	if !x.pause(p.before) {
		return
	}
	events.open()
	for i := range p.blocks {
		if !x.runBlock(p, events, i) {
			return
		}
	}
	if p.fault != nil {
		x.failAfter(p.fault, events)
		return
	}
	events.close()
	x.flush()
	x.over = !x.gone()
}

// runBlock sends a block, and says whether the reply goes on.
func (x *exchange) runBlock(p *plan, events streamer, index int) bool {
	b := &p.blocks[index]
	for i, chunk := range b.chunks {
		if p.fault != nil && x.sent == after(p.fault) {
			x.failAfter(p.fault, events)
			return false
		}
		if x.sent > 0 && !x.pause(p.between) {
			return false
		}
		if i == 0 {
			events.begin(index, b)
		}
		events.delta(index, b, chunk)
		if i == len(b.chunks)-1 {
			events.end(index, b)
		}
		x.part()
		if x.gone() {
			return false
		}
	}
	return true
}

// part sends the events so far as one part. The time is taken before, or a client could see the part before that time.
func (x *exchange) part() {
	if x.sent++; x.sent == 1 {
		x.records.change(func() { x.record.FirstPart = time.Now() })
	}
	x.flush()
}

// flush sends the events so far, as one write.
func (x *exchange) flush() {
	if !x.begun {
		x.begun = true
		contentType := "text/event-stream; charset=utf-8"
		if d, ok := x.dialect.(interface{ contentType() string }); ok {
			contentType = d.contentType()
		}
		x.header(http.StatusOK, contentType)
	}
	// An error means that the client went away, which the request's context says too.
	_, _ = x.w.Write(x.out.buf.Bytes())
	_ = x.control.Flush()
	x.out.buf.Reset()
}

func (x *exchange) header(status int, contentType string) {
	x.records.change(func() { x.record.Status = status })
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	if h.Get(x.dialect.requestIDHeader()) == "" {
		h.Set(x.dialect.requestIDHeader(), newID("req_"))
	}
	x.w.WriteHeader(status)
}

// failBefore carries out a fault that comes in place of the reply.
func (x *exchange) failBefore(p *plan) bool {
	switch f := p.fault; {
	case f.Kind == FaultStatus || f.Kind == FaultContextTooLong:
		if x.pause(p.before) {
			x.fail(f.apiError(x.dialect), f)
		}
	case f.Kind == FaultReset:
		if x.pause(p.before) {
			x.drop(true)
		}
	case f.Kind == FaultHang && f.After == nil:
		<-x.r.Context().Done()
	default:
		return false
	}
	return true
}

// failAfter carries out a fault that breaks off the reply.
func (x *exchange) failAfter(f *Fault, events streamer) {
	if f.Kind == FaultError || f.Kind == FaultFailed {
		x.failWithin(f, events)
	}
	x.flush()
	switch f.Kind {
	case FaultCut:
		x.drop(false)
	case FaultHang:
		<-x.r.Context().Done()
	default:
		x.over = true
	}
}

// failWithin sends the events that end a stream with an error.
func (x *exchange) failWithin(f *Fault, events streamer) {
	switch {
	case json.Valid([]byte(f.Body)):
		x.out.event("error", json.RawMessage(f.Body))
		return
	case f.Body != "":
		x.out.raw(f.Body)
		return
	}
	e := f.apiError(x.dialect)
	if replies, ok := events.(interface{ failed(e apiError) }); ok && f.Kind == FaultFailed {
		replies.failed(e)
		return
	}
	events.fail(e)
}

func after(f *Fault) int {
	if f.After == nil {
		return 0
	}
	return *f.After
}

// fail answers with an HTTP error. fault is nil where the error is not the script's.
func (x *exchange) fail(e apiError, fault *Fault) {
	requestID := newID("req_")
	x.w.Header().Set(x.dialect.requestIDHeader(), requestID)
	if d, ok := x.dialect.(interface {
		errorHeader(apiError) (name, value string)
	}); ok {
		name, value := d.errorHeader(e)
		x.w.Header().Set(name, value)
	}
	if fault != nil {
		e.retry = fault.RetryAfter
	}
	body, contentType := encode(x.dialect.errorShape(e, requestID)), "application/json"
	if fault != nil {
		fault.setHeaders(x.w.Header(), time.Now())
		if fault.Body != "" {
			body = []byte(fault.Body)
			contentType = http.DetectContentType(body)
		}
	}
	x.header(e.status, contentType)
	_, _ = x.w.Write(body)
	x.over = !x.gone()
}

// drop ends the connection without ending the answer; reset also tells the client so at once.
func (x *exchange) drop(reset bool) {
	x.over = true
	connection, _, err := x.control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 has no connection to take over; this resets the stream.
	}
	if tcp, ok := connection.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

// pause waits, and says whether the client is still there.
func (x *exchange) pause(d time.Duration) bool {
	if d <= 0 {
		return !x.gone()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
		return false
	}
}
