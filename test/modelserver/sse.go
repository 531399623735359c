// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// dialect is one wire protocol: how a request is read, and how replies and errors are written.
type dialect interface {
	protocol() Protocol
	// decode reads and checks a request as the provider does.
	decode(body []byte, header http.Header) (*request, *apiError)
	errorShape(e apiError, requestID string) any
	contextTooLong() apiError
	wrongKey(key string) apiError
	unknownModel(model string) apiError
	requestIDHeader() string
	// stream begins a reply.
	stream(r *request, p *plan, out *sse) streamer
}

// streamer writes the events of one reply, in the provider's order.
type streamer interface {
	open()
	begin(index int, b *block)
	delta(index int, b *block, chunk string)
	end(index int, b *block)
	// close writes the events that end a reply well.
	close()
	// fail writes the event that ends a reply with an error.
	fail(e apiError)
}

// sse collects server-sent events until they are flushed as one write.
type sse struct {
	buf bytes.Buffer
	enc *json.Encoder
	// frame is the form of an event that is not a server-sent one; nil: they are.
	frame func(data []byte) []byte
}

func newSSE() *sse {
	s := &sse{}
	s.enc = json.NewEncoder(&s.buf)
	s.enc.SetEscapeHTML(false)
	return s
}

// event adds an event. An empty name leaves the event line out.
func (s *sse) event(name string, data any) {
	if s.frame != nil {
		s.buf.Write(s.frame(bytes.TrimSpace(encode(data))))
		return
	}
	if name != "" {
		s.buf.WriteString("event: ")
		s.buf.WriteString(name)
		s.buf.WriteByte('\n')
	}
	s.buf.WriteString("data: ")
	if err := s.enc.Encode(data); err != nil {
		// Every event is a struct of this package, which always encodes.
		panic(fmt.Sprintf("encode an event: %v", err))
	}
	s.buf.WriteByte('\n')
}

// raw adds an event whose data is no JSON.
func (s *sse) raw(data string) {
	s.buf.WriteString("data: ")
	s.buf.WriteString(data)
	s.buf.WriteString("\n\n")
}

// encode is the JSON of v, without the escapes that are for HTML only.
func encode(v any) []byte {
	s := newSSE()
	if err := s.enc.Encode(v); err != nil {
		// Only the arguments of a tool call come from outside, and those were checked.
		panic(fmt.Sprintf("encode a body: %v", err))
	}
	return s.buf.Bytes()
}
