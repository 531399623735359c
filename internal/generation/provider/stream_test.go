// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// The events of a reply of Claude with calls.
const (
	claudeStart = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`
	claudeEnd   = `{"type":"message_stop"}`
)

// claudeCall are the events of a call, in two pieces.
func claudeCall(index, id, first, second string) []string {
	piece := func(json string) string {
		return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":"` +
			strings.ReplaceAll(json, `"`, `\"`) + `"}}`
	}
	return []string{
		`{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"` + id +
			`","name":"f","input":{}}}`, piece(""), piece(first), piece(second)}
}

func claudeStop(index string) string { return `{"type":"content_block_stop","index":` + index + `}` }

func claudeReason(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason +
		`","stop_sequence":null},"usage":{"output_tokens":50}}`
}

func TestCallsOfAReplyThatIsCut(t *testing.T) {
	events := func(groups ...any) (all []string) {
		for _, g := range groups {
			switch g := g.(type) {
			case string:
				all = append(all, g)
			case []string:
				all = append(all, g...)
			}
		}
		return all
	}
	whole := events(claudeCall("0", "a", `{"x"`, `:1}`), claudeStop("0"))
	empty := claudeCall("1", "b", "", "")[:1]
	half := claudeCall("1", "b", `{"y":`, `"rm `)
	item := func(status, arguments string) []string {
		call := `"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","status":"` + status + `","arguments":"` +
			strings.ReplaceAll(arguments, `"`, `\"`) + `"}}`
		return []string{
			`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,` + call,
			`{"type":"response.output_item.done","sequence_number":2,"output_index":0,` + call}
	}
	incomplete := `{"type":"response.incomplete","sequence_number":3,"response":{"id":"r","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}`
	chatCall := providertest.Chunk(
		`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":"}}]}`, "null")
	const cutA, cutB = "a f {} InputTruncated", "b f {} InputTruncated"
	for name, c := range map[string]struct {
		from   string
		events []string
		want   []string
		finish string
	}{
		"whole calls": {"anthropic", events(claudeStart, whole, claudeCall("1", "b", "", ""), claudeStop("1"),
			claudeReason("tool_use"), claudeEnd), []string{`a f {"x":1} `, `b f {} `}, "tool_use"},
		"within the arguments": {"anthropic", events(claudeStart, whole, half, claudeReason("max_tokens"), claudeEnd),
			[]string{`a f {"x":1} `, cutB}, "max_tokens"},
		"within the arguments, where the block ends": {"anthropic", events(claudeStart, whole, half, claudeStop("1"),
			claudeReason("max_tokens"), claudeEnd), []string{`a f {"x":1} `, cutB}, "max_tokens"},
		"before the first argument": {"anthropic", events(claudeStart, whole, empty, claudeReason("max_tokens"), claudeEnd),
			[]string{`a f {"x":1} `, cutB}, "max_tokens"},
		"before the first argument, where the block ends": {"anthropic", events(claudeStart, whole, empty, claudeStop("1"),
			claudeReason("max_tokens"), claudeEnd), []string{`a f {"x":1} `, cutB}, "max_tokens"},
		"behind a whole call": {"anthropic", events(claudeStart, whole, claudeReason("max_tokens"), claudeEnd),
			[]string{`a f {"x":1} `}, "max_tokens"},
		"at a pause behind a call without arguments": {"anthropic", events(claudeStart, claudeCall("0", "b", "", ""),
			claudeStop("0"), claudeReason("pause_turn"), claudeEnd), []string{`b f {} `}, "pause_turn"},
		"of OpenAI's responses": {"openai responses", events(item("incomplete", `{"x":`), incomplete), []string{cutA},
			"max_output_tokens"},
		"behind a whole call of OpenAI's responses": {"openai responses", events(item("completed", `{"x":1}`), incomplete),
			[]string{`a f {"x":1} `}, "max_output_tokens"},
		"behind a whole call of OpenAI's chat": {"openai", events(
			strings.ReplaceAll(chatCall, `{\"x\":`, `{\"x\":1}`), providertest.Chunk("{}", `"length"`), "[DONE]"),
			[]string{`a f {"x":1} `}, "length"},
		"of OpenAI's chat": {"openai", events(chatCall, providertest.Chunk("{}", `"length"`), "[DONE]"), []string{cutA},
			"length"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(c.events...)}
			got, err := server.Ask(t, providertest.Specs[c.from], nil)
			var calls []string
			for _, part := range got.Parts {
				if call := part.ToolCall; call != nil {
					calls = append(calls, strings.Join([]string{call.ID, call.Name, call.Input, string(call.Refusal)}, " "))
				}
			}
			check.Equal(t, "error, calls, pending calls, finish reason", []any{nil, c.want, len(c.want), c.finish},
				[]any{err, calls, int(got.PendingCalls), got.FinishReason})
		})
	}
}

func TestReplyWithoutItsEndIsNone(t *testing.T) {
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
		{"anthropic", "cut", slices.Concat([]string{claudeStart}, claudeCall("0", "a", "{", "}"), []string{claudeStop("0")}),
			false},
		{"anthropic", "with a reason", slices.Concat([]string{claudeStart}, claudeCall("0", "a", "{", "}"),
			[]string{claudeStop("0"), claudeReason("tool_use")}), true},
	} {
		for end, failure := range map[string]error{"the end": io.EOF, "a reset": syscall.ECONNRESET} {
			t.Run(c.from+", "+c.name+", "+end, func(t *testing.T) {
				server := &cutServer{providertest.Scripted{Replies: providertest.Events(c.events...)}, failure}
				got, err := providertest.Ask(t, providertest.Specs[c.from], server)
				if c.whole {
					check.Equal(t, "error, calls", []any{nil, 1}, []any{err, len(providertest.Calls(got))})
				} else if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
	}
}

// cutServer is a server whose answers end with an error.
type cutServer struct {
	providertest.Scripted

	failure error
}

func (s *cutServer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.Scripted.RoundTrip(r)
	if err == nil {
		response.Body = io.NopCloser(io.MultiReader(response.Body, iotest.ErrReader(s.failure)))
	}
	return response, err
}
