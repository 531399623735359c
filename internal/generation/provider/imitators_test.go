// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/kit/waiting"
)

// askBody asks a server of the protocol, over HTTP, that answers with these bytes.
func askBody(t *testing.T, p finish.Protocol, contentType, body string) (collect.Step, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	spec := providertest.Specs[speakers[p]]
	spec.BaseURL = server.URL
	return providertest.Ask(t, spec, http.DefaultTransport)
}

// outline is what a reply has: its texts and calls.
func outline(s collect.Step) (all []string) {
	for _, part := range s.Parts {
		switch {
		case part.ToolCall != nil:
			all = append(all, part.ToolCall.Name+" "+part.ToolCall.Input)
		case part.Text != nil:
			all = append(all, *part.Text)
		}
	}
	return all
}

func TestUnusualEventStreamsAreRead(t *testing.T) {
	say := func(delta string) string { return "data: " + providertest.Chunk(delta, "null") + "\n\n" }
	const end = "data: [DONE]\n\n"
	call := func(index, id, name, arguments string) string {
		quoted := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }
		fields := `"index":` + index
		if id != "" {
			fields += `,"id":"` + id + `"`
		}
		return say(`{"tool_calls":[{` + fields + `,"function":{"name":` + quoted(name) + `,"arguments":` + quoted(arguments) + `}}]}`)
	}
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"no data":           {"data:\n\n" + say(`{"content":"Hi"}`) + "data: \n\n" + end, []string{"Hi"}},
		"a byte order mark": {"\ufeff" + say(`{"content":"Hi"}`) + end, []string{"Hi"}},
		"CR alone":          {strings.ReplaceAll(say(`{"content":"Hi"}`)+end, "\n", "\r"), []string{"Hi"}},
		"a split surrogate": {say(`{"content":"a\ud83d"}`) + say(`{"content":"\ude00"}`) + end, []string{"a😀"}},
		"a list of parts":   {say(`{"content":[{"type":"text","text":"Hi"},{"type":"text","text":"!"}]}`) + end, []string{"Hi!"}},
		"null for a delta":  {say("null") + say(`{"content":"Hi"}`) + end, []string{"Hi"}},
		"null for content":  {say(`{"content":null}`) + say(`{"content":"Hi"}`) + end, []string{"Hi"}},
		"null for choices":  {`data: {"id":"1","object":"chat.completion.chunk","choices":null}` + "\n\n" + say(`{"content":"Hi"}`) + end, []string{"Hi"}},
		"calls without ids": {call("0", "", "f", `{"a":1}`) + call("0", "", "g", `{"b":2}`) + end, []string{`f {"a":1}`, `g {"b":2}`}},
		"the same call twice": {call("0", "", "f", `{"a":1}`) + call("0", "", "f", `{"a":1}`) + end,
			[]string{`f {"a":1}`, `f {"a":1}`}},
		"a whole call again":   {call("0", "x", "f", `{"a":1}`) + call("0", "x", "f", `{"a":1}`) + end, []string{`f {"a":1}`}},
		"blanks behind a call": {call("0", "x", "f", `{"a":1}`) + call("0", "x", "f", " ") + end, []string{`f {"a":1}`}},
		"calls of one chunk": {say(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":""}},`+
			`{"index":1,"id":"x","function":{"name":"g","arguments":""}}]}`) + end, []string{"f {}", "g {}"}},
		"calls in a message": {`data: {"choices":[{"index":0,"message":{"tool_calls":[{"id":"x","function":{"name":"f",` +
			`"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n" + end, []string{"f {}"}},
		"calls outside a choice": {`data: {"choices":[],"tool_calls":[{"id":"x","function":{"name":"f"}}]}` + "\n\n" +
			say(`{"content":"Hi"}`) + end, []string{"Hi"}},
		"one id at two indexes": {call("0", "x", "f", "") + call("1", "x", "", `{"a":1}`) + end, []string{`f {"a":1}`}},
		"a name in pieces": {call("0", "x", "get_", "") + call("0", "", "time", "") + call("0", "", "", `{}`) + end,
			[]string{"get_time {}"}},
		"a call without arguments": {call("0", "x", "f", "") + say("{}") + end, []string{"f {}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := askBody(t, finish.ChatCompletions, "text/event-stream", c.body)
			check.Equal(t, "error, parts", []any{nil, c.want}, []any{err, outline(got)})
		})
	}
}

func TestWholeRepliesAreReadWhereStreamsAreAsked(t *testing.T) {
	for name, c := range map[string]struct {
		protocol finish.Protocol
		body     string
	}{
		"chat completions": {finish.ChatCompletions, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{` +
			`"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[{"id":"a","type":"function","function":{` +
			`"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,` +
			`"completion_tokens":2,"total_tokens":7}}`},
		"responses": {finish.Responses, `{"id":"r","object":"response","status":"completed","output":[{"type":"message",` +
			`"id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[]}]},` +
			`{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}","status":"completed"}],` +
			`"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}`},
		"messages": {finish.Messages, `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text",` +
			`"text":"Hi"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}],"stop_reason":"tool_use",` +
			`"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":2}}`},
		"gemini": {finish.Gemini, `[{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"},{"functionCall":{` +
			`"name":"f","args":{"x":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,` +
			`"candidatesTokenCount":2,"totalTokenCount":7}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := askBody(t, c.protocol, "application/json", c.body)
			check.Equal(t, "error, parts, output tokens, reply outcome", []any{nil, []string{"Hi", `f {"x":1}`}, 2, v1beta1.ReplyToolCalls}, []any{err, outline(got), got.Usage.OutputTokens, got.ReplyOutcome})
		})
	}
}

func TestKeepAlivesAreNoParts(t *testing.T) {
	var body strings.Builder
	for _, event := range claudeReply("text", `"end_turn"`) {
		body.WriteString(providertest.Events(`{"type":"ping"}`, event, `{"type":"system.message"}`)[0].Body +
			"event: keepalive\ndata: keep-alive\n\n")
	}
	spec := providertest.Specs["anthropic"]
	model, err := provider.New(&spec, providertest.Key, &http.Client{Transport: providertest.Canned{Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte(body.String())}})
	check.OK(t, err)
	stream, err := model.Stream(t.Context(), question)
	check.OK(t, err)
	var got []fantasy.StreamPartType
	for part := range stream {
		got = append(got, part.Type)
	}
	check.Equal(t, "the parts", []fantasy.StreamPartType{fantasy.StreamPartTypeTextStart, fantasy.StreamPartTypeTextDelta,
		fantasy.StreamPartTypeTextEnd, fantasy.StreamPartTypeFinish}, got)
	_, err = askBody(t, finish.Messages, "text/event-stream", "event: error\ndata: Overloaded\n\n")
	check.Equal(t, "an error that is a text", v1beta1.ErrorOverloaded,
		fault.Classify(err, fault.Subject{Spec: &spec}).Reason)
}

func TestEmptyErrorIsNone(t *testing.T) {
	for _, none := range []string{`""`, "{}", "null", "false"} {
		got, err := askBody(t, finish.ChatCompletions, "application/json", `{"error":`+none+`,"choices":[{"index":0,`+
			`"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)
		check.Equal(t, none, []any{nil, []string{"Hi"}}, []any{err, outline(got)})
	}
}

func TestStreamsThatEndEarlyLeaveNothing(t *testing.T) {
	for p, name := range speakers {
		t.Run(string(p), func(t *testing.T) {
			begun, first := replyOf(p, "text", "stop"), 2
			if p == finish.Messages { // The text begins in its third event.
				first = 3
			}
			begun = begun[:min(len(begun), first)]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, providertest.Events(begun...)[0].Body)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{}}
			spec := providertest.Specs[name]
			spec.BaseURL = server.URL
			model, err := provider.New(&spec, providertest.Key, client)
			check.OK(t, err)
			leave := func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream, err := model.Stream(ctx, question)
				check.OK(t, err)
				for range stream {
					break
				}
			}
			leave()
			client.CloseIdleConnections()
			before := runtime.NumGoroutine()
			for range 20 {
				leave()
			}
			waiting.Until(t, time.Minute, "nothing is left of the streams", func() bool {
				client.CloseIdleConnections()
				return runtime.NumGoroutine() < before+10
			})
		})
	}
}
