// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"io"
	"testing"

	"parley.dev/parley/test/kit/providertest"
)

func TestAReplyWithoutItsEndIsNoneAlsoBehindACall(t *testing.T) {
	call := providertest.Chunk(
		`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "null")
	said := providertest.Chunk(
		`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"finish_reason\": \"stop\"}"}}]}`, `""`)
	gemini := `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{"finishReason":"STOP"}}}]}}]}`
	for _, c := range []struct {
		from, name string
		events     []string
		whole      bool
	}{
		{"openai", "cut", []string{call}, false},
		{"vercel", "cut", []string{call}, false},
		{"openrouter", "cut, of itself", []string{said}, false},
		{"openai-compatible", "with a reason", []string{call, providertest.Chunk("{}", `"tool_calls"`)}, true},
		// The server says itself that it has sent everything: what was paid for is kept.
		{"openai-compatible", "with the last event alone", []string{call, "[DONE]"}, true},
		{"google", "cut", []string{gemini}, false},
		{"google", "with a reason", []string{gemini, `{"candidates":[{"finishReason":"STOP"}]}`}, true},
	} {
		t.Run(c.from+", "+c.name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(c.events...)}
			got, err := server.Ask(t, providertest.Specs[c.from], nil)
			if c.whole != (err == nil) || c.whole && len(providertest.Calls(got)) != 1 {
				t.Fatalf("calls %v, %v", providertest.Calls(got), err)
			}
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v", err)
			}
		})
	}
}
