// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// wire is one provider's protocol.
type wire interface {
	name() Protocol
	// decode reads a request.
	decode(body []byte) (*request, error)
	// stream returns what turns a plan into events.
	stream(r *request, p *plan) streamer
	// whole is the body of a reply that is not streamed.
	whole(r *request, p *plan) any
	// failure is the body of an HTTP error, and the data of an error event.
	failure(f *Fault) any
}

// streamer turns a plan into events. Its methods are called in the order of the reply.
type streamer interface {
	open() []sse
	startBlock(b *block) []sse
	chunk(b *block, first bool, text string) []sse
	endBlock(b *block) []sse
	close() []sse
}

// sse is one server-sent event; data is JSON, or a string that is sent as it is.
type sse struct {
	event string
	data  any
}

// exchange is one request and its answer.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	wire    wire
	request *request
	records *records
	record  *Record
	sent    int
}

func (x *exchange) run(p *plan) {
	if p.fault != nil && x.failBefore(p) {
		return
	}
	if !x.request.stream {
		x.runWhole(p)
		return
	}
	events := x.wire.stream(x.request, p)
	if p.headersFirst {
		x.send(events.open())
	}
	if !x.pause(p.before) {
		return
	}
	if !p.headersFirst {
		x.send(events.open())
	}
	for i := range p.blocks {
		if !x.runBlock(p, events, &p.blocks[i]) {
			return
		}
	}
	if p.fault != nil && x.failAfter(p) {
		return
	}
	x.send(events.close())
}

// runBlock sends a block, and says whether the reply goes on.
func (x *exchange) runBlock(p *plan, events streamer, b *block) bool {
	opening := events.startBlock(b)
	for i, text := range b.chunks {
		if p.fault != nil && x.sent == after(p.fault) && x.failAfter(p) {
			return false
		}
		if x.sent > 0 && !x.pause(p.between) {
			return false
		}
		x.send(append(opening, events.chunk(b, i == 0, text)...))
		opening = nil
		if x.sent++; x.sent == 1 {
			x.records.change(func() { x.record.FirstPart = time.Now() })
		}
		if x.r.Context().Err() != nil {
			return false
		}
	}
	x.send(append(opening, events.endBlock(b)...))
	return true
}

func (x *exchange) runWhole(p *plan) {
	if !x.pause(p.before + time.Duration(max(0, p.parts()-1))*p.between) {
		return
	}
	x.records.change(func() { x.record.FirstPart = time.Now() })
	x.json(http.StatusOK, x.wire.whole(x.request, p))
}

// failBefore carries out a fault that comes in place of the reply.
func (x *exchange) failBefore(p *plan) bool {
	switch f := p.fault; {
	case f.Kind == FaultStatus || f.Kind == FaultContextTooLong || f.Kind == FaultError && !x.request.stream:
		if x.pause(p.before) {
			x.fail(f)
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
func (x *exchange) failAfter(p *plan) bool {
	switch p.fault.Kind {
	case FaultCut:
		x.drop(false)
	case FaultEnd:
	case FaultError:
		x.send([]sse{{event: "error", data: x.wire.failure(p.fault)}})
	case FaultHang:
		<-x.r.Context().Done()
	default:
		return false
	}
	return true
}

func after(f *Fault) int {
	if f.After == nil {
		return 0
	}
	return *f.After
}

// fail answers with an HTTP error.
func (x *exchange) fail(f *Fault) {
	for name, value := range f.Headers {
		x.w.Header().Set(name, value)
	}
	if retry := f.RetryAfter; retry != nil {
		retry.set(x.w.Header())
	}
	if f.Body != "" {
		x.records.change(func() { x.record.Status = f.Status })
		x.w.WriteHeader(f.Status)
		_, _ = x.w.Write([]byte(f.Body))
		return
	}
	x.json(f.status(), x.wire.failure(f))
}

func (r *RetryAfter) set(h http.Header) {
	if r.Seconds != nil {
		h.Set("Retry-After", fmt.Sprint(*r.Seconds))
	}
	if r.Date != nil {
		h.Set("Retry-After", time.Now().Add(time.Duration(*r.Date)).UTC().Format(http.TimeFormat))
	}
	if r.Milliseconds != nil {
		h.Set("Retry-After-Ms", fmt.Sprint(*r.Milliseconds))
	}
}

// status is the HTTP status of a fault.
func (f *Fault) status() int {
	switch {
	case f.Status != 0:
		return f.Status
	case f.Kind == FaultContextTooLong:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func (x *exchange) json(status int, body any) {
	x.records.change(func() { x.record.Status = status })
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	encoder := json.NewEncoder(x.w)
	encoder.SetEscapeHTML(false) // As the providers write it; clients look for ">" in messages.
	_ = encoder.Encode(body)
}

// send sends events and lets them go at once.
func (x *exchange) send(events []sse) {
	if x.record.Status == 0 {
		x.records.change(func() { x.record.Status = http.StatusOK })
		x.w.Header().Set("Content-Type", "text/event-stream")
		x.w.WriteHeader(http.StatusOK)
	}
	for _, e := range events {
		if e.event != "" {
			_, _ = fmt.Fprintf(x.w, "event: %s\n", e.event)
		}
		raw, ok := e.data.(string)
		if !ok {
			encoded, _ := json.Marshal(e.data) // Made of maps and strings, which always encode.
			raw = string(encoded)
		}
		_, _ = fmt.Fprintf(x.w, "data: %s\n\n", raw)
	}
	_ = http.NewResponseController(x.w).Flush()
}

// drop ends the connection without ending the answer; reset also tells the client so at once.
func (x *exchange) drop(reset bool) {
	connection, _, err := http.NewResponseController(x.w).Hijack()
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
		return x.r.Context().Err() == nil
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
