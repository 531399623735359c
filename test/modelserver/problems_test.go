// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"net/http"
	"testing"

	"parley.dev/parley/test/modelserver"
)

func TestProblemMessageMatchesProviderWording(t *testing.T) {
	for name, c := range map[string]struct {
		problem    modelserver.Problem
		path, body string
		status     int
		want       string
	}{
		"OpenAI's quota": {modelserver.ProblemQuota, chatPath, chat(user), 429,
			`"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing ` +
				`details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/` +
				`error-codes/api-errors.","param":null,"type":"insufficient_quota"`},
		"Anthropic's credit": {modelserver.ProblemQuota, messagesPath, anthropicChat(user), 400,
			"Your credit balance is too low"},
		"of chat": {modelserver.ProblemHistory, chatPath, chat(user), 400, "must be followed by tool messages"},
		"of responses": {modelserver.ProblemHistory, responsesPath, responsesChat(user), 400,
			"No tool output found for function call"},
		"common to both": {modelserver.ProblemNoAccess, responsesPath, responsesChat(user), 403, `"code":"model_not_found"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, failing(modelserver.Fault{Kind: modelserver.FaultStatus, Problem: c.problem}))
			expect(t, url+c.path, c.body, c.status, c.want)
		})
	}
}

func TestAReplyCanFailWithinItsStream(t *testing.T) {
	for name, c := range map[string]struct {
		fault      modelserver.Fault
		path, body string
		want       string
	}{
		"responses": {modelserver.Fault{Status: 429}, responsesPath, responsesChat(user),
			`"error":{"code":"rate_limit_exceeded"`},
		"chat": {modelserver.Fault{Status: 500}, chatPath, chat(user),
			`data: {"error":{"code":null,"message":"The server had an error`},
		"own event": {modelserver.Fault{Body: `{"error":"boom"}`}, chatPath, chat(user), "data: {\"error\":\"boom\"}\n\n"},
		"no JSON":   {modelserver.Fault{Body: "<html>"}, chatPath, chat(user), "data: <html>\n\n"},
		"of Claude's": {modelserver.Fault{Problem: modelserver.ProblemCapacity}, messagesPath, anthropicChat(user),
			`"type":"overloaded_error"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.fault.Kind, c.fault.After = modelserver.FaultFailed, new(1)
			_, url := serve(t, failing(c.fault))
			expect(t, url+c.path, c.body, http.StatusOK, c.want)
		})
	}
}
