// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
)

// serve listens with the script until the test ends.
func serve(t *testing.T, script modelserver.Script) (*modelserver.Server, string) {
	t.Helper()
	server, err := modelserver.New(script)
	check.OK(t, err)
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	return server, listener.URL
}

// send posts a body as the providers' clients do, and returns the answer and its whole body.
func send(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	check.OK(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	check.OK(t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	check.OK(t, err)
	return response, string(all)
}

// expect posts a body, and checks the status of the answer and what its body contains.
func expect(t *testing.T, url, body string, status int, want string, header ...string) {
	t.Helper()
	response, answer := send(t, http.MethodPost, url, body, header...)
	check.Equal(t, "status", status, response.StatusCode)
	check.Contains(t, answer, want)
}

func chat(messages string) string { return `{"model":"m","stream":true,"messages":[` + messages + `]}` }

func anthropicChat(messages string) string {
	return `{"model":"m","max_tokens":1,"stream":true,"messages":[` + messages + `]}`
}

func responsesChat(items string) string { return `{"model":"m","stream":true,"input":[` + items + `]}` }

const (
	user    = `{"role":"user","content":"a"}`
	asks    = `{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	answers = `{"role":"tool","tool_call_id":"x","content":"a"}`
	uses    = `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}`
	results = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"a"}]}`
)

func TestBadRequestsAreRejectedWithProviderMessage(t *testing.T) {
	_, url := serve(t, modelserver.Script{})
	long := strings.Repeat("a", 65)
	for name, c := range map[string]struct{ path, body, want string }{
		"chat: no JSON":        {chatPath, `{`, "could not parse the JSON body"},
		"chat: no model":       {chatPath, `{"messages":[` + user + `]}`, "you must provide a model parameter"},
		"chat: no messages":    {chatPath, `{"model":"m"}`, "Missing required parameter: 'messages'"},
		"chat: empty messages": {chatPath, chat(""), "empty array"},
		"chat: bad role":       {chatPath, chat(`{"role":"robot","content":"a"}`), "Invalid value: 'robot'"},
		"chat: no content":     {chatPath, chat(`{"role":"user"}`), "got null"},
		"chat: orphan result": {chatPath, chat(user + "," + answers),
			"messages with role 'tool' must be a response to"},
		"chat: late result": {chatPath, chat(asks + "," + user + "," + answers),
			"did not have response messages: x"},
		"chat: unanswered call": {chatPath, chat(user + "," + asks), "did not have response messages: x"},
		"chat: call without an id": {chatPath, chat(`{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}`),
			"tool_calls[0].id"},
		"chat: call with a long id": {chatPath, chat(strings.ReplaceAll(asks, `"x"`, `"`+long+`"`)),
			"Expected a string with maximum length 40"},
		"chat: tool name with a space": {chatPath, `{"model":"m","messages":[` + user +
			`],"tools":[{"function":{"name":"a b"}}]}`, "does not match pattern"},
		"chat: tool name too long": {chatPath, `{"model":"m","messages":[` + user + `],"tools":[{"function":{"name":"` +
			long + `"}}]}`, "string too long"},
		"chat: empty tools": {chatPath, `{"model":"m","messages":[` + user + `],"tools":[]}`,
			"Invalid 'tools': empty array"},
		"chat: choice without tools": {chatPath, `{"model":"m","messages":[` + user + `],"tool_choice":"auto"}`,
			"only allowed when 'tools' are specified"},
		"chat: no stream": {chatPath, `{"model":"m","messages":[` + user + `]}`, "ask for a stream"},
		"chat: options of no stream": {chatPath, `{"model":"m","messages":[` + user +
			`],"stream_options":{"include_usage":true}}`, "only allowed when 'stream' is enabled"},

		"responses: no model":         {responsesPath, `{"input":"a"}`, "Missing required parameter: 'model'"},
		"responses: no input":         {responsesPath, `{"model":"m"}`, "Missing required parameter: 'input'"},
		"responses: input of no type": {responsesPath, `{"model":"m","input":7}`, "Invalid type for 'input'"},
		"responses: bad role": {responsesPath, responsesChat(`{"role":"tool","content":"a"}`),
			"Invalid value: 'tool'"},
		"responses: orphan output": {responsesPath,
			responsesChat(`{"type":"function_call_output","call_id":"x","output":"a"}`),
			"No tool call found for function call output with call_id x"},
		"responses: unanswered call": {responsesPath,
			responsesChat(`{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}`),
			"No tool output found for function call x"},
		"responses: bare reasoning": {responsesPath,
			responsesChat(`{"type":"reasoning","id":"rs_1","summary":[]},` + user), "without its required following item"},
		"responses: tool name": {responsesPath,
			`{"model":"m","input":"a","tools":[{"type":"function","name":"a.b"}]}`, "does not match pattern"},
		"responses: unknown predecessor": {responsesPath, `{"model":"m","input":"a","previous_response_id":"resp_1"}`,
			"Previous response with id 'resp_1' not found"},

		"anthropic: no model": {messagesPath, `{"max_tokens":1,"messages":[` + user + `]}`,
			"model: Field required"},
		"anthropic: no max_tokens": {messagesPath, chat(user), "max_tokens: Field required"},
		"anthropic: max_tokens of 0": {messagesPath, `{"model":"m","max_tokens":0,"messages":[` + user + `]}`,
			"greater than or equal to 1"},
		"anthropic: no messages": {messagesPath, anthropicChat(""), "at least one message is required"},
		"anthropic: system as a role": {messagesPath, anthropicChat(`{"role":"system","content":"a"}`),
			`Unexpected role \"system\"`},
		"anthropic: assistant first": {messagesPath, anthropicChat(`{"role":"assistant","content":"a"}`),
			"first message must use"},
		"anthropic: empty content": {messagesPath, anthropicChat(`{"role":"user","content":[]}`),
			"must have non-empty content"},
		"anthropic: empty text": {messagesPath,
			anthropicChat(`{"role":"user","content":[{"type":"text","text":""}]}`), "text content blocks must be non-empty"},
		"anthropic: white space": {messagesPath,
			anthropicChat(`{"role":"user","content":[{"type":"text","text":" "}]}`), "must contain non-whitespace text"},
		"anthropic: result with an empty text": {messagesPath,
			anthropicChat(user + "," + uses + "," + strings.ReplaceAll(results, `"content":"a"`,
				`"content":[{"type":"text","text":""}]`)), "text content blocks must be non-empty"},
		"anthropic: thinking at the end": {messagesPath,
			anthropicChat(user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"b"}]},` + user),
			"cannot be `thinking`"},
		"anthropic: too many marks": {messagesPath,
			anthropicChat(`{"role":"user","content":[` +
				strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 5), ",") +
				`]}`), "A maximum of 4 blocks with cache_control"},
		"anthropic: unanswered call": {messagesPath, anthropicChat(user + "," + uses + "," + user),
			"without `tool_result` blocks immediately after: x"},
		"anthropic: call at the end": {messagesPath, anthropicChat(user + "," + uses),
			"without `tool_result` blocks immediately after: x"},
		"anthropic: text before a result": {messagesPath, anthropicChat(user + "," + uses + "," + user + "," + results),
			"without `tool_result` blocks immediately after: x"},
		"anthropic: orphan result": {messagesPath, anthropicChat(results),
			"unexpected `tool_use_id` found in `tool_result` blocks: x"},
		"anthropic: the same id twice": {messagesPath,
			anthropicChat(user + "," + uses + "," + results + "," + uses + "," + results), "ids must be unique"},
		"anthropic: bad id": {messagesPath,
			anthropicChat(user + "," + strings.ReplaceAll(uses, `"x"`, `"x.y"`)), "tool_use.id: String should match pattern"},
		"anthropic: input of no object": {messagesPath,
			anthropicChat(user + "," + strings.ReplaceAll(uses, `{}`, `"{}"`)), "Input should be a valid dictionary"},
		"anthropic: white space at the end": {messagesPath, anthropicChat(user + `,{"role":"assistant","content":"a "}`),
			"trailing whitespace"},
		"anthropic: tool name": {messagesPath, `{"model":"m","max_tokens":1,"messages":[` + user +
			`],"tools":[{"name":"a b","input_schema":{"type":"object"}}]}`, "String should match pattern"},
		"anthropic: tool without a schema": {messagesPath, `{"model":"m","max_tokens":1,"messages":[` + user +
			`],"tools":[{"name":"a"}]}`, "input_schema: Field required"},
		"anthropic: tool with an odd schema": {messagesPath, `{"model":"m","max_tokens":1,"messages":[` + user +
			`],"tools":[{"name":"a","input_schema":{}}]}`, "input_schema.type: Field required"},
		"anthropic: the same tool name twice": {messagesPath, `{"model":"m","max_tokens":1,"messages":[` + user +
			`],"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]}`,
			"must be unique"},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := send(t, http.MethodPost, url+c.path, c.body)
			var shape struct {
				Type  string
				Error struct{ Type string }
			}
			check.OK(t, json.Unmarshal([]byte(body), &shape))
			// Only Anthropic's errors have a type outside.
			outside := map[bool]string{true: "error"}[c.path == messagesPath]
			check.Equal(t, "status and types", []any{http.StatusBadRequest, "invalid_request_error", outside},
				[]any{response.StatusCode, shape.Error.Type, shape.Type})
			check.Contains(t, body, c.want)
		})
	}
}

func TestGoodRequestsAreNotRefused(t *testing.T) {
	_, url := serve(t, modelserver.Script{})
	for name, c := range map[string]struct{ path, body string }{
		"chat: a round of tools": {chatPath, chat(user + "," + asks + "," + answers + "," + user)},
		"chat: developer": {chatPath,
			chat(`{"role":"developer","content":[{"type":"text","text":"a"}]},` + user)},
		"responses: a string": {responsesPath, `{"model":"m","stream":true,"input":"a"}`},
		"responses: a round of tools": {responsesPath,
			responsesChat(user +
				`,{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","call_id":"x","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"x","output":"a"}`)},
		"anthropic: a round of tools": {messagesPath, anthropicChat(user + "," + uses + "," + results)},
		"anthropic: same role twice": {messagesPath,
			anthropicChat(user + "," + user + "," + uses + "," + results + "," + user)},
		"anthropic: tool name of 128": {messagesPath, `{"model":"m","stream":true,"max_tokens":1,"messages":[` + user +
			`],"tools":[{"name":"` + strings.Repeat("a", 128) + `","input_schema":{"type":"object"}}]}`},
		"anthropic: a prefilled reply": {messagesPath, anthropicChat(user + `,{"role":"assistant","content":"a"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, url+c.path, c.body, http.StatusOK, "")
		})
	}
}

func TestKeyIsRequiredWhenScriptDemandsIt(t *testing.T) {
	_, url := serve(t, modelserver.Script{RequireKey: "sk-right"})
	for name, c := range map[string]struct {
		path, body string
		header     []string
		status     int
		want       string
	}{
		"chat, none": {chatPath, chat(user), nil, 401, `"code":null`},
		"chat, wrong": {chatPath, chat(user), []string{"Authorization", "Bearer sk-wrong"}, 401,
			`"code":"invalid_api_key"`},
		"chat, right": {chatPath, chat(user), []string{"Authorization", "Bearer sk-right"}, 200, "chat.completion"},
		"responses, wrong": {responsesPath, `{"model":"m","input":"a"}`, []string{"Authorization", "Bearer sk-wrong"}, 401,
			`"code":"invalid_api_key"`},
		"anthropic, none":  {messagesPath, anthropicChat(user), nil, 401, "authentication_error"},
		"anthropic, wrong": {messagesPath, anthropicChat(user), []string{"X-Api-Key", "sk-wrong"}, 401, "invalid x-api-key"},
		"anthropic, right": {messagesPath, anthropicChat(user), []string{"X-Api-Key", "sk-right"}, 200, `"type":"message"`},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, url+c.path, c.body, c.status, c.want, c.header...)
		})
	}
}

func TestAnUnknownModelOrPathIsNotFound(t *testing.T) {
	_, url := serve(t, modelserver.Script{Models: []string{"other"}})
	for path, c := range map[string]struct{ body, want string }{
		chatPath:       {chat(user), "model_not_found"},
		responsesPath:  {responsesChat(user), "model_not_found"},
		messagesPath:   {anthropicChat(user), "not_found_error"},
		"/v2/anything": {`{}`, "Invalid URL (POST /v2/anything)"},
	} {
		expect(t, url+path, c.body, http.StatusNotFound, c.want)
	}
}
