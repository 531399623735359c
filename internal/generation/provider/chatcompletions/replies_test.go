// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestCallsOfOneIndexDifferByID(t *testing.T) {
	call := func(index, id, name, arguments string) string {
		return providertest.Chunk(`{"tool_calls":[{"index":`+index+`,"id":`+id+`,"type":"function","function":{"name":`+name+
			`,"arguments":`+arguments+`}}]}`, "null")
	}
	for name, c := range map[string]struct{ events, want []string }{
		"whole calls": {
			[]string{call("0", `"a"`, `"f"`, `"{}"`), call("0", `"b"`, `"g"`, `"{\"x\":\"<1>\"}"`),
				call("0", `"c"`, `"f"`, `"{}"`)},
			[]string{`a f {}`, `b g {"x":"<1>"}`, `c f {}`},
		},
		"in pieces": {
			[]string{
				call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `""`, `""`, `"1}"`), call("0", `"b"`, `"g"`, `"{\"x\""`),
				call("0", "null", "null", `":2}"`),
				call("1", `"c"`, `"h"`, `"{}"`),
			},
			[]string{`a f {"x":1}`, `b g {"x":2}`, `c h {}`},
		},
		"the id in each piece": {
			[]string{call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `"a"`, `"f"`, `"1}"`), call("1", `"b"`, `"f"`, `"{}"`)},
			[]string{`a f {"x":1}`, `b f {}`},
		},
		"another id in each piece": {
			[]string{call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `"z"`, `""`, `"1}"`)},
			[]string{`a f {"x":1}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(append(c.events,
				providertest.Chunk("{}", `"tool_calls"`), "[DONE]")...)}
			got, err := server.Ask(t, providertest.Specs["openai-compatible"], nil)
			check.Equal(t, "error, calls", []any{nil, c.want}, []any{err, providertest.Calls(got)})
		})
	}
}

func TestTextsAroundReasoningKeepTheirOrder(t *testing.T) {
	server := &providertest.Scripted{Replies: providertest.Events(
		providertest.Chunk(`{"content":"Let me "}`, "null"), providertest.Chunk(`{"content":"see."}`, "null"),
		providertest.Chunk(`{"reasoning_content":"hm"}`, "null"), providertest.Chunk(`{"content":"It is "}`, "null"),
		providertest.Chunk(`{"content":"so."}`, `"stop"`), "[DONE]")}
	got, err := server.Ask(t, providertest.Specs["openai-compatible"], nil)
	var parts []string
	for _, part := range got.Parts {
		parts = append(parts, string(part.Type)+" "+*part.Text)
	}
	check.Equal(t, "error, parts", []any{nil, []string{"Text Let me see.", "Reasoning hm", "Text It is so."}},
		[]any{err, parts})
}

// brokenOff answers with an error whose body breaks off.
type brokenOff struct{}

func (brokenOff) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusTooManyRequests, Request: r, Header: http.Header{"Retry-After": {"7"}},
		Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"error":"slow`), brokenOff{}))}, nil
}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBrokenErrorBodyKeepsStatusAndHeaders(t *testing.T) {
	spec := providertest.Compatible.Spec("http://models.example/v1")
	e := fault.Classify(providertest.Call(t, spec, &http.Client{Transport: brokenOff{}}), fault.Subject{Spec: spec})
	if e.Reason != v1beta1.ErrorRateLimited || e.StatusCode != 429 || e.RetryAfterSeconds == nil ||
		*e.RetryAfterSeconds != 7 {
		t.Errorf("got %+v", e)
	}
}
