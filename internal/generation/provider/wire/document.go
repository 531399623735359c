// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
)

// eventsOfDocument are the events that a protocol makes of a JSON document. An error in it has the status that it
// names.
func eventsOfDocument(body io.Reader, header http.Header, ofDocument func([]byte) [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		document, err := readDocument(body)
		document = bytes.TrimSpace(document)
		if status := errorStatus(document); err == nil && status != 0 {
			err = statusError(status, header, document)
		}
		if err == nil && !json.Valid(document) {
			err = fmt.Errorf("reading a reply that is not JSON: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, data := range ofDocument(document) {
			if !yield(data, nil) {
				return
			}
		}
	}
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
	if json.Unmarshal(document, &answer) != nil || !IsError(answer.Error) {
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
