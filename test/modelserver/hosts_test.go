// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/test/modelserver"
)

const (
	geminiPath  = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
	bedrockPath = "/model/us.anthropic.claude/invoke-with-response-stream"
)

var (
	geminiKey  = []string{"X-Goog-Api-Key", "k"}
	bedrockKey = []string{"Authorization", "Bearer k"}
	azureKey   = []string{"Api-Key", "k"}
)

func contents(of ...string) string { return `{"contents":[` + strings.Join(of, ",") + `]}` }

// The parts of conversations in Gemini's protocol. The signature is one of the server's own.
const (
	gUser      = `{"role":"user","parts":[{"text":"a"}]}`
	gModel     = `{"role":"model","parts":[{"text":"b"}]}`
	gSigned    = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"Cv/+gABzY3JpcHRlZDp4"}]}`
	gUnsigned  = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`
	gResult    = `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"x"}}}]}`
	gTwo       = `{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"Cv/+gABzY3JpcHRlZDp4"},{"functionCall":{"name":"g"}}]}`
	gForged    = `{"role":"model","parts":[{"text":"b","thoughtSignature":"AAAA"}]}`
	bedrockAsk = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":1,"messages":[` + user + `]}`
)

func TestHostsRefuseWhatTheRealOnesRefuse(t *testing.T) {
	_, url := serve(t, modelserver.Script{})
	for name, c := range map[string]struct {
		path, body string
		header     []string
		status     int
		want       string
	}{
		"gemini: no JSON": {geminiPath, `{`, geminiKey, 400, "Invalid JSON payload received"},
		"gemini: unknown name": {geminiPath, `{"contents":[` + gUser + `],"messages":[]}`, geminiKey, 400,
			"Invalid JSON payload received"},
		"gemini: no contents": {geminiPath, `{}`, geminiKey, 400, "contents is not specified"},
		"gemini: empty parts": {geminiPath, contents(`{"role":"user","parts":[]}`), geminiKey, 400,
			"contents.parts must not be empty"},
		"gemini: a part of nothing": {geminiPath, contents(`{"role":"user","parts":[{}]}`), geminiKey, 400,
			"must have one initialized field"},
		"gemini: bad role": {geminiPath, contents(gUser, `{"role":"assistant","parts":[{"text":"a"}]}`, gUser),
			geminiKey, 400, "Please use a valid role: user, model."},
		"gemini: model at the end": {geminiPath, contents(gUser, gModel), geminiKey, 400, "end with a user role"},
		"gemini: no tokens": {geminiPath,
			`{"contents":[` + gUser + `],"generationConfig":{"maxOutputTokens":0}}`, geminiKey, 400,
			"maxOutputTokens value of 0"},
		"gemini: call first": {geminiPath, contents(gSigned, gResult), geminiKey, 400,
			"function call turn comes immediately after"},
		"gemini: call after a model": {geminiPath, contents(gUser, gModel, gSigned, gResult), geminiKey, 400,
			"function call turn comes immediately after"},
		"gemini: orphan result": {geminiPath, contents(gUser, gResult), geminiKey, 400,
			"function response turn comes immediately after"},
		"gemini: unanswered call": {geminiPath, contents(gUser, gSigned, gUser), geminiKey, 400,
			"number of function response parts"},
		"gemini: one of two answered": {geminiPath, contents(gUser, gTwo, gResult), geminiKey, 400,
			"number of function response parts"},
		"gemini: result of another": {geminiPath, contents(gUser, gSigned, strings.Replace(gResult, `"f"`, `"g"`, 1)),
			geminiKey, 400, "match those of a function call"},
		"gemini: result of no object": {geminiPath,
			contents(gUser, gSigned, strings.Replace(gResult, `{"result":"x"}`, `"x"`, 1)), geminiKey, 400,
			"Invalid JSON payload received"},
		"gemini: call without signature": {geminiPath, contents(gUser, gUnsigned, gResult), geminiKey, 400,
			"missing a thought_signature"},
		"gemini: forged signature": {geminiPath, contents(gUser, gForged, gUser), geminiKey, 400,
			"Thought signature is not valid"},
		"gemini: tool name": {geminiPath,
			`{"contents":[` + gUser + `],"tools":[{"functionDeclarations":[{"name":"a b"}]}]}`, geminiKey, 400,
			"Invalid function name"},
		"gemini: no key":              {geminiPath, contents(gUser), nil, 403, "unregistered callers"},
		"gemini: no such method":      {"/v1beta/models/m:predict", contents(gUser), geminiKey, 404, "NOT_FOUND"},
		"gemini: stream of no events": {"/v1beta/models/m:streamGenerateContent", contents(gUser), geminiKey, 400, "alt=sse"},
		"bedrock: no key":             {bedrockPath, bedrockAsk, nil, 403, "Missing Authentication Token"},
		"bedrock: no JSON":            {bedrockPath, `{`, bedrockKey, 400, "Malformed input request"},
		"bedrock: model in the body": {bedrockPath, strings.Replace(bedrockAsk, "{", `{"model":"m",`, 1), bedrockKey, 400,
			"extraneous key [model]"},
		"bedrock: stream in the body": {bedrockPath, strings.Replace(bedrockAsk, "{", `{"stream":true,`, 1), bedrockKey, 400,
			"extraneous key [stream]"},
		"bedrock: no version": {bedrockPath, strings.Replace(bedrockAsk, "bedrock-2023-05-31", "2023-06-01", 1),
			bedrockKey, 400, "required key [anthropic_version]"},
		"bedrock: no max_tokens": {bedrockPath, strings.Replace(bedrockAsk, `"max_tokens":1,`, "", 1), bedrockKey, 400,
			"max_tokens: Field required"},
		"azure: no key": {"/openai/v1" + chatPath[3:], chat(user), nil, 401, "invalid subscription key"},
		"azure: no messages": {"/openai/v1" + chatPath[3:], `{"model":"m"}`, azureKey, 400,
			"Missing required parameter: 'messages'"},
		"azure: no version": {"/openai/deployments/d" + chatPath[3:], chat(user), azureKey, 404,
			"Resource not found"},
		"openrouter: empty messages": {"/api/v1" + chatPath[3:], chat(""), nil, 400, `"code":400`},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, url+c.path, c.body, c.status, c.want, c.header...)
		})
	}
}

func TestHostsTakeGoodRequests(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		header     []string
		protocol   modelserver.Protocol
		model      string
	}{
		"gemini": {geminiPath, contents(gUser, gSigned, gResult, gModel, gUser), geminiKey, modelserver.Gemini,
			"gemini-3-pro"},
		"gemini, unsigned": {strings.Replace(geminiPath, "3", "2.5", 1), contents(gUser, gUnsigned, gResult), geminiKey,
			modelserver.Gemini, "gemini-2.5-pro"},
		// What an earlier turn thought is not asked for.
		"gemini, an old call": {geminiPath, contents(gUser, gUnsigned, gResult, gModel, gUser), geminiKey, modelserver.Gemini,
			"gemini-3-pro"},
		"bedrock": {bedrockPath, bedrockAsk, bedrockKey, modelserver.Bedrock, "us.anthropic.claude"},
		"azure":   {"/openai/v1" + chatPath[3:], chat(user), azureKey, modelserver.OpenAIChat, "m"},
		"azure, deployment": {"/openai/deployments/d" + chatPath[3:] + "?api-version=1", chat(user), azureKey,
			modelserver.OpenAIChat, "d"},
		"azure, responses": {"/openai/v1/responses", responsesChat(user), azureKey, modelserver.OpenAIResponses, "m"},
		"openrouter":       {"/api/v1" + chatPath[3:], chat(user), nil, modelserver.OpenAIChat, "m"},
		"vercel":           {"/vercel/v1" + chatPath[3:], chat(user), nil, modelserver.OpenAIChat, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			server, url := serve(t, modelserver.Script{Models: []string{c.model}})
			expect(t, url+c.path, c.body, http.StatusOK, "", c.header...)
			if got := server.Requests()[0]; got.Protocol != c.protocol || got.Path != c.path {
				t.Errorf("recorded %s at %s", got.Protocol, got.Path)
			}
		})
	}
}

func TestHostsRejectWrongKeyAndUnknownModel(t *testing.T) {
	type refusal struct {
		status int
		answer string
	}
	for name, c := range map[string]struct {
		path, body, header string
		key, model         refusal
	}{
		"gemini": {geminiPath, contents(gUser), "X-Goog-Api-Key", refusal{400, "API_KEY_INVALID"},
			refusal{404, "models/gemini-3-pro is not found"}},
		"bedrock": {bedrockPath, bedrockAsk, "Authorization", refusal{403, "security token"},
			refusal{400, "model identifier is invalid"}},
		"azure": {"/openai/v1" + chatPath[3:], chat(user), "Api-Key", refusal{401, "invalid subscription key"},
			refusal{404, "DeploymentNotFound"}},
		"openrouter": {"/api/v1" + chatPath[3:], chat(user), "Authorization", refusal{401, `"code":401`},
			refusal{404, `"code":404`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, modelserver.Script{RequireKey: "right", Models: []string{"other"}})
			for key, want := range map[string]refusal{"wrong": c.key, "right": c.model} {
				if c.header == "Authorization" {
					key = "Bearer " + key
				}
				expect(t, url+c.path, c.body, want.status, want.answer, c.header, key)
			}
		})
	}
}

func TestGeminiChunksComeInTheProvidersForm(t *testing.T) {
	_, url := serve(t, everything)
	_, body := send(t, http.MethodPost, url+geminiPath, contents(gUser), geminiKey...)
	all := events(t, body)
	type m = map[string]any
	var parts []any
	for _, e := range all {
		part, _ := e.pick("candidates", 0, "content", "parts", 0).(m)
		delete(part, "thoughtSignature")
		if call, ok := part["functionCall"].(m); ok {
			delete(call, "id")
		}
		parts = append(parts, part)
	}
	if diff := cmp.Diff([]any{
		m{"text": "h", "thought": true}, m{"text": "m", "thought": true}, m{"text": "<a>"}, m{"text": "b"},
		m{"functionCall": m{"name": "f", "args": m{"x": 1.}}}, m(nil),
	}, parts); diff != "" {
		t.Fatal(diff)
	}
	end := all[len(all)-1]
	if diff := cmp.Diff(m{
		"promptTokenCount": 100., "cachedContentTokenCount": 40., "candidatesTokenCount": 40., "thoughtsTokenCount": 10.,
		"totalTokenCount": 150.,
	}, end.pick("usageMetadata")); diff != "" || end.pick("candidates", 0, "finishReason") != "STOP" {
		t.Error(diff, end.data)
	}
}

func TestGeminiSendsRetryDelayInBody(t *testing.T) {
	_, url := serve(t,
		failing(modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429,
			RetryAfter: &modelserver.RetryAfter{Seconds: new(7)}}))
	_, body := send(t, http.MethodPost, url+geminiPath, contents(gUser), geminiKey...)
	for _, want := range []string{`"code":429`, `"status":"RESOURCE_EXHAUSTED"`, `"retryDelay":"7s"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
}
