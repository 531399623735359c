// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// stream makes the body of an answer one of events. A server that does not stream answers with one JSON document: a
// reply becomes its events, an error gets the status of an error.
func stream(response *http.Response, held *holder) error {
	body := bufio.NewReader(response.Body)
	buffered := struct {
		io.Reader
		io.Closer
	}{body, response.Body}
	if !isDocument(body) {
		response.Body = held.events(buffered)
		return nil
	}
	document, err := readDocument(body)
	_ = response.Body.Close() // What was read is what counts.
	if err != nil {
		return err
	}
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	if status := errorStatus(document); status != 0 {
		document = withErrorObject(document)
		response.StatusCode, response.Status = status, http.StatusText(status)
		response.Header.Set("Content-Type", "application/json")
		response.Body = io.NopCloser(bytes.NewReader(document))
		return nil
	}
	var events bytes.Buffer
	for _, event := range held.Events(document) {
		var named struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(event, &named) == nil && named.Type != "" { // Anthropic's library goes by the name.
			events.WriteString("event: " + named.Type + "\n")
		}
		events.WriteString("data: ")
		events.Write(event)
		events.WriteString("\n\n")
	}
	response.Header.Set("Content-Type", "text/event-stream")
	response.Body = held.events(io.NopCloser(&events))
	return nil
}

// events is a body of events, which is closed with the call.
func (h *holder) events(body io.ReadCloser) io.ReadCloser {
	events := newEventBody(body, h)
	h.bodies = append(h.bodies, events)
	return events
}

// readDocument reads a document to its end. transport bounds a stream by its events, and a document can have more than
// one empty line.
func readDocument(from io.Reader) ([]byte, error) {
	document, err := io.ReadAll(io.LimitReader(from, maxEventBytes+1))
	if len(document) > maxEventBytes {
		return nil, fmt.Errorf("reading a JSON document in place of events: it has more than %d MiB", maxEventBytes>>20)
	}
	return document, err
}

// isDocument reports whether a body begins as a JSON document does. No field of an event does.
func isDocument(body *bufio.Reader) bool {
	for n := 1; ; n++ {
		begin, err := body.Peek(n)
		if err != nil {
			return false
		}
		switch begin[n-1] {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return true
		default:
			return false
		}
	}
}

// errorStatus is the HTTP status that the error in a document names, 500 if it names none; 0: there is no error.
func errorStatus(document []byte) int {
	var list []json.RawMessage
	if json.Unmarshal(document, &list) == nil && len(list) > 0 {
		document = list[0] // Google answers with a list.
	}
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(document, &answer) != nil {
		return 0
	}
	switch string(answer.Error) {
	case "", "null", `""`, "{}", "false": // Some servers have it in every reply.
		return 0
	}
	var named struct {
		Code   any `json:"code"`
		Status any `json:"status"`
	}
	_ = json.Unmarshal(answer.Error, &named) // An error can be a text.
	return cmp.Or(asStatus(named.Code), asStatus(named.Status), http.StatusInternalServerError)
}

// asStatus is the HTTP status of an error that a value is, be it a number or a text; 0: it is none.
func asStatus(value any) int {
	status, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || status < http.StatusBadRequest || status >= 600 {
		return 0
	}
	return status
}

// withErrorObject is the document with an object as its error: OpenAI's library reads no text.
func withErrorObject(document []byte) []byte {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(document, &answer) != nil {
		return document
	}
	encoded, err := json.Marshal(map[string]any{"error": map[string]string{"message": answer.Error}})
	if err != nil {
		return document
	}
	return encoded
}
