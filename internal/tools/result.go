// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// MaxResultBytes is the maximum size of a tool's result: 64 KiB, as chat systems allow where a model's context limit
	// is unknown.
	MaxResultBytes = 64 << 10
	// minResultBytes is the limit for small contexts: less is often of no use.
	minResultBytes = 16 << 10
	// markerRoom is reserved for the marker of omitted bytes.
	markerRoom = 256
)

// errTooLong is a result that does not fit however much of it is omitted.
var errTooLong = errors.New("the result does not fit into what the model can read; ask for less")

// ResultLimit is the maximum size of a result for a model whose context holds this many tokens: a third of it, at 3
// bytes a token. 0: the limit is unknown.
func ResultLimit(contextLimit int64) int {
	if contextLimit == 0 {
		return MaxResultBytes
	}
	return int(max(minResultBytes, min(contextLimit, MaxResultBytes)))
}

// ResultLimitOf is ResultLimit for the model that replied last in the chat.
func ResultLimitOf(chat *v1beta1.Chat) int {
	if chat.Status.Context == nil {
		return ResultLimit(0)
	}
	return ResultLimit(chat.Status.Context.Limit)
}

// Truncate shortens a text to at most limit bytes: the first two thirds and the last third stay, with a marker
// between them.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	room := max(0, limit-markerRoom)
	head := clip.Bytes(text, room*2/3)
	tail := clip.LastBytes(text, room-room*2/3)
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, len(text)-len(head)-len(tail), tail)
}

// Fit encodes the result that shrunk returns for a number of bytes or entries. It begins with most, and halves it until
// the result fits the model of the chat.
func Fit(chat *v1beta1.Chat, most int, shrunk func(most int) any) (string, error) {
	limit := ResultLimitOf(chat)
	for ; ; most /= 2 {
		text, err := Encode(shrunk(most))
		switch {
		case err != nil:
			return "", err
		case len(text) <= limit:
			return text, nil
		case most == 0:
			return "", errTooLong
		}
	}
}

// FitLines encodes the result that shrunk returns for as many of the lines as fit the model of the chat; if not even
// one fits, for a part of it. It estimates the number of lines, because halving would omit up to half of what fits.
func FitLines(chat *v1beta1.Chat, lines int, shrunk func(lines, bytes int) any) (string, error) {
	for {
		text, err := Encode(shrunk(lines, MaxResultBytes))
		if err != nil {
			return "", err
		}
		over := len(text) - ResultLimitOf(chat)
		switch {
		case over <= 0:
			return text, nil
		case lines <= 1:
			return Fit(chat, MaxResultBytes, func(bytes int) any { return shrunk(lines, bytes) })
		}
		lines = max(1, lines-max(1, over*lines/len(text)))
	}
}

// Encode returns compact JSON. It does not escape the characters of HTML.
func Encode(result any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return "", fmt.Errorf("writing the result: %w", err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
