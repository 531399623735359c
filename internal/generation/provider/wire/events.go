// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tmaxmax/go-sse"
)

// maxEventBytes is the longest event, or document, that is read: more than httpguard lets through of one event.
const maxEventBytes = 17 << 20

// endOfEvents is the last event of OpenAI's Chat Completions protocol.
var endOfEvents = []byte("[DONE]")

// eventsOf are the data of the events of an answer, which may be in AWS's framing if framed. One that came as a
// document is that of a server that does not stream.
func eventsOf(response *http.Response, framed bool, ofDocument func([]byte) [][]byte) iter.Seq2[[]byte, error] {
	if framed && strings.HasPrefix(response.Header.Get("Content-Type"), "application/vnd.amazon") {
		return frames(response.Body)
	}
	body := bufio.NewReader(response.Body)
	if isDocument(body) {
		return eventsOfDocument(body, response.Header, ofDocument)
	}
	return (&eventReader{body: body, atLine: true}).events
}

// eventReader reads a stream of events. It follows the HTML standard: a byte order mark, any end of a line, several
// lines of data, and events without data are read as it says. An event that is no JSON breaks the stream, and so does
// one that the stream ends within.
type eventReader struct {
	body       io.Reader
	surrogates surrogates
	// document is a JSON document that follows the events, such as an error of Google; atLine is whether a line begins.
	document []byte
	atLine   bool
	// failure is how reading ended, if not with the end: the parser puts an error of its own in its place.
	failure error
}

func (r *eventReader) events(yield func([]byte, error) bool) {
	// What follows completes a last event that ends with its line, or with nothing.
	whole := io.MultiReader(readerFunc(r.read), strings.NewReader("\n\n"))
	for event, err := range sse.Read(whole, &sse.ReadConfig{MaxEventSize: maxEventBytes}) {
		if err != nil {
			yield(nil, cmp.Or(r.failure, err))
			return
		}
		if !r.pass(event, yield) {
			return
		}
	}
	if r.document != nil {
		r.pass(sse.Event{Data: string(r.document)}, yield)
	}
}

// pass passes on the data of an event, if it has any. It reports whether to continue.
func (r *eventReader) pass(event sse.Event, yield func([]byte, error) bool) bool {
	data, err := r.data(event)
	if err == nil && len(data) == 0 {
		return true
	}
	return yield(data, err) && err == nil
}

// readerFunc is a reader that is a function.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// read reads what the server sends, up to a document among the events.
func (r *eventReader) read(p []byte) (int, error) {
	if r.document != nil {
		return 0, io.EOF
	}
	n, err := r.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failure = err
	}
	for i, c := range p[:n] {
		if c == '{' && r.atLine {
			r.document, r.failure = readDocument(io.MultiReader(bytes.NewReader(bytes.Clone(p[i:n])), r.body))
			return i, cmp.Or(r.failure, io.EOF)
		}
		r.atLine = c == '\n' || c == '\r'
	}
	return n, err
}

// data is the content of the event; empty if it only keeps the connection alive.
func (r *eventReader) data(event sse.Event) ([]byte, error) {
	data := bytes.TrimSpace([]byte(event.Data))
	switch {
	case len(data) == 0, bytes.Equal(data, endOfEvents):
		return data, nil
	case event.Type == "error":
		return errorEvent(data)
	case json.Valid(data):
		return r.surrogates.join(data), nil
	case event.Type != "" && data[0] != '{' && data[0] != '[':
		return nil, nil
	}
	return nil, fmt.Errorf("reading an event that is not JSON: %w", io.ErrUnexpectedEOF)
}

// errorEvent is the data of an event that is an error by its name. Some servers send it without a field error, or as
// plain text.
func errorEvent(data []byte) ([]byte, error) {
	var cause any = string(data)
	if json.Valid(data) {
		var event struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(data, &event) == nil && IsError(event.Error) {
			return data, nil
		}
		cause = json.RawMessage(data)
	}
	return json.Marshal(map[string]any{"type": "error", "error": cause})
}

// frames are the data of the events within AWS's framing, such as Bedrock's. An exception is an error.
func frames(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var decoder eventstream.Decoder
		for {
			message, err := decoder.Decode(body, nil)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading a message of an AWS event stream: %w", err))
				return
			}
			data, err := frameData(&message)
			if !yield(data, err) || err != nil {
				return
			}
		}
	}
}

// frameData is the data of the event in a message.
func frameData(message *eventstream.Message) ([]byte, error) {
	if kind := message.Headers.Get(":exception-type"); kind != nil {
		return nil, exceptionError(kind.String(), message.Payload)
	}
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	if err := json.Unmarshal(message.Payload, &chunk); err != nil || !json.Valid(chunk.Bytes) {
		return nil, fmt.Errorf("reading a message of an AWS event stream that has no JSON: %w", io.ErrUnexpectedEOF)
	}
	return chunk.Bytes, nil
}

// exceptionError is an exception of AWS within a stream.
func exceptionError(kind string, payload []byte) error {
	var exception struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(payload, &exception) // One without a message has its name.
	event, err := json.Marshal(map[string]any{"error": map[string]string{"type": kind, "message": exception.Message}})
	if err != nil {
		return err
	}
	return EventError(event)
}

var (
	// lead is the first half of a character at the end of a text, trail is the second half at the beginning of one.
	lead  = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}"`)
	trail = regexp.MustCompile(`"\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
)

// surrogates joins the halves of a character that a server has split over two events: Go's decoder makes two unknown
// characters of them.
type surrogates struct{ held []byte }

// join moves the first half of a character to its second half in the next event.
func (s *surrogates) join(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u`)) {
		return data
	}
	if at := trail.FindIndex(data); at != nil && s.held != nil {
		data = slices.Insert(data, at[0]+1, s.held...)
		s.held = nil
	}
	if at := lead.FindIndex(data); at != nil && !escaped(data, at[0]) {
		s.held = bytes.Clone(data[at[0] : at[1]-1])
		data = slices.Delete(data, at[0], at[1]-1)
	}
	return data
}

// escaped reports whether the backslash at the index is part of an escaped one.
func escaped(data []byte, at int) bool {
	before := 0
	for at > before && data[at-1-before] == '\\' {
		before++
	}
	return before%2 == 1
}
