// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/test/modelserver"
)

var everything = modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
	Steps: []modelserver.Step{modelserver.Think("h", "m"), modelserver.Say("<a>", "b"), modelserver.Call("f", `{"x":1}`)},
	Usage: &modelserver.Usage{Input: 100, Output: 50, Cached: 40, Reasoning: 10},
}}}}

type event struct {
	name string
	data map[string]any
}

// events reads a stream of server-sent events; "[DONE]" has no data.
func events(t *testing.T, body string) (out []event) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var e event
		for line := range strings.SplitSeq(block, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			} else if data, ok := strings.CutPrefix(line, "data: "); !ok {
				t.Fatalf("odd line %q", line)
			} else if data == "[DONE]" {
				e.name = data
			} else if err := json.Unmarshal([]byte(data), &e.data); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, e)
	}
	return out
}

// pick walks into the data of an event: a key of an object or an index of a list at a time.
func (e event) pick(path ...any) any {
	var v any = e.data
	for _, p := range path {
		switch p := p.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[p]
		case int:
			list, _ := v.([]any)
			if p >= len(list) {
				return nil
			}
			v = list[p]
		}
	}
	return v
}

func names(all []event) (out []string) {
	for _, e := range all {
		out = append(out, e.name)
	}
	return out
}

func TestAnthropicEventsComeInTheProvidersOrder(t *testing.T) {
	_, url := serve(t, everything)
	response, body := send(t, http.MethodPost, url+messagesPath, anthropicChat(user))
	if response.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" ||
		response.Header.Get("Request-Id") == "" {
		t.Errorf("header %v", response.Header)
	}
	all := events(t, body)
	if diff := cmp.Diff([]string{
		"message_start",
		"content_block_start", "ping", "content_block_delta", "content_block_delta", "content_block_delta",
		"content_block_stop",
		"content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
		"message_delta", "message_stop",
	}, names(all)); diff != "" {
		t.Fatal(diff)
	}
	for _, e := range all {
		if e.data["type"] != e.name {
			t.Errorf("event %s has type %v", e.name, e.data["type"])
		}
	}
	got := []any{
		all[0].pick("message", "usage", "input_tokens"), all[0].pick("message", "usage", "cache_read_input_tokens"),
		all[5].pick("delta", "type"), all[8].pick("delta", "text"), all[11].pick("content_block", "name"),
		all[12].pick("delta", "partial_json"), all[13].pick("delta", "partial_json"),
		all[15].pick("delta", "stop_reason"), all[15].pick("usage", "output_tokens"),
	}
	if diff := cmp.Diff([]any{60., 40., "signature_delta", "<a>", "f", "", `{"x":1}`, "tool_use", 50.}, got); diff != "" {
		t.Error(diff)
	}
}

func TestChatChunksComeInTheProvidersOrder(t *testing.T) {
	_, url := serve(t, everything)
	_, body := send(t, http.MethodPost, url+chatPath,
		strings.Replace(chat(user), "{", `{"stream_options":{"include_usage":true},`, 1))
	all := events(t, body)
	deltas := make([]any, 0, len(all))
	for _, e := range all {
		deltas = append(deltas, e.pick("choices", 0, "delta"))
	}
	type m = map[string]any
	call := func(c m) m { return m{"tool_calls": []any{c}} }
	id, _ := all[5].pick("choices", 0, "delta", "tool_calls", 0, "id").(string)
	if diff := cmp.Diff([]any{
		m{"role": "assistant", "content": nil, "refusal": nil},
		m{"reasoning_content": "h"}, m{"reasoning_content": "m"}, m{"content": "<a>"}, m{"content": "b"},
		call(m{"index": 0., "id": id, "type": "function", "function": m{"name": "f", "arguments": ""}}),
		call(m{"index": 0., "function": m{"arguments": `{"x":1}`}}),
		m{}, nil, nil,
	}, deltas); diff != "" {
		t.Fatal(diff)
	}
	if !strings.HasPrefix(id, "call_") || all[7].pick("choices", 0, "finish_reason") != "tool_calls" ||
		all[9].name != "[DONE]" {
		t.Errorf("id %s, end %v", id, all[7:])
	}
	if all[8].pick("usage", "prompt_tokens") != 100. ||
		all[8].pick("usage", "prompt_tokens_details", "cached_tokens") != 40. {
		t.Errorf("usage %v", all[8].data)
	}
	if !strings.Contains(body, "<a>") {
		t.Error("the text is escaped as if for HTML")
	}
}

func TestChatStreamOmitsUsageUnlessRequested(t *testing.T) {
	_, url := serve(t, everything)
	if _, body := send(t, http.MethodPost, url+chatPath, chat(user)); strings.Contains(body, "usage") {
		t.Error(body)
	}
}

func TestResponsesEventsComeInTheProvidersOrder(t *testing.T) {
	_, url := serve(t, everything)
	_, body := send(t, http.MethodPost, url+responsesPath,
		`{"model":"m","input":"a","stream":true,"include":["reasoning.encrypted_content"]}`)
	all := events(t, body)
	if diff := cmp.Diff([]string{
		"response.created", "response.in_progress",
		"response.output_item.added", "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta",
		"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
		"response.reasoning_summary_part.done", "response.output_item.done",
		"response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done",
		"response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done",
		"response.output_item.done",
		"response.completed",
	}, names(all)); diff != "" {
		t.Fatal(diff)
	}
	for i, e := range all {
		if e.data["type"] != e.name || e.data["sequence_number"] != float64(i) {
			t.Errorf("event %d, %s, has type %v and number %v", i, e.name, e.data["type"], e.data["sequence_number"])
		}
	}
	end := all[len(all)-1]
	got := []any{
		all[2].pick("item", "encrypted_content") == nil, all[4].pick("summary_index"), all[11].pick("content_index"),
		all[11].pick("delta"),
		all[17].pick("item_id") == all[16].pick("item", "id"), end.pick("response", "output", 1, "content", 0, "text"),
		end.pick("response", "usage", "input_tokens_details", "cached_tokens"), end.pick("response", "status"),
	}
	if diff := cmp.Diff([]any{false, 0., 0., "<a>", true, "<a>b", 40., "completed"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFinishReasonUsesProtocolTerm(t *testing.T) {
	for finish, want := range map[modelserver.Finish][3]string{
		modelserver.FinishStop: {`"finish_reason":"stop"`, `"status":"completed"`, `"stop_reason":"end_turn"`},
		modelserver.FinishLength: {`"finish_reason":"length"`, `"reason":"max_output_tokens"`,
			`"stop_reason":"max_tokens"`},
		modelserver.FinishContentFilter: {`"finish_reason":"content_filter"`, `"reason":"content_filter"`,
			`"stop_reason":"refusal"`},
		modelserver.FinishToolCalls: {`"finish_reason":"tool_calls"`, `"status":"completed"`, `"stop_reason":"tool_use"`},
	} {
		_, url := serve(t,
			modelserver.Always(modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("a")}, Finish: finish}))
		for i, c := range []struct{ path, body string }{{chatPath, chat(user)}, {responsesPath, responsesChat(user)},
			{messagesPath, anthropicChat(user)}} {
			if _, answer := send(t, http.MethodPost, url+c.path, c.body); !strings.Contains(answer, want[i]) {
				t.Errorf("%s at %s: %s", finish, c.path, answer)
			}
		}
	}
}
