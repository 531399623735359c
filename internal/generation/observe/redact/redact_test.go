// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"parley.dev/parley/internal/generation/observe/redact"
	"parley.dev/parley/test/kit/check"
)

const key = "sk-known/0123+456789"

var redactor = redact.New(key)

func TestHeadersThatHoldSecretsAreRedacted(t *testing.T) {
	for _, name := range []string{
		"Authorization", "authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Proxy-Authorization", "Cookie",
		"Set-Cookie", "apikey",
		"X-Vendor-Api_Key", "X-Session-Token", "X-Amz-Security-Token", "My-Secret", "X-Bearer", "Ocp-Apim-Subscription-Key",
		// Called like a rate limit, but no number.
		"Anthropic-Ratelimit-Tokens-Remaining", "X-Ratelimit-Remaining-Tokens",
	} {
		check.Equal(t, name, redact.Mark, redactor.Header(name, "hunter2"))
	}
	check.Equal(t, "a scheme in another header", redact.Mark, redactor.Header("X-Custom", "Bearer hunter2"))
}

func TestHeadersThatSayWhatHappenedStay(t *testing.T) {
	for name, value := range map[string]string{
		"Anthropic-Ratelimit-Tokens-Remaining": "39000", "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:00Z",
		"X-Ratelimit-Remaining-Tokens": "149984", "x-ratelimit-limit-tokens": "150000", "x-ratelimit-reset-tokens": "6m0s",
		"x-ratelimit-remaining-requests": "59", "X-Amzn-Bedrock-Input-Token-Count": "12", "Retry-After": "7",
		"Content-Type": "application/json", "Request-Id": "req_011CSHoEeqs5C35K2UUqR7Fy", "User-Agent": "parley/v1alpha1",
	} {
		check.Equal(t, name, value, redactor.Header(name, value))
	}
}

func TestURLs(t *testing.T) {
	for in, want := range map[string]string{
		"https://models.test/v1/chat?api-version=2024&x=1": "https://models.test/v1/chat?api-version=2024&x=1",
		"https://me:hunter2@models.test/v1":                "https://models.test/v1",
		"https://models.test/v1?key=hunter2&alt=sse":       "https://models.test/v1?key=[redacted]&alt=sse",
		"https://models.test/v1?a=b&X-Amz-Signature=h&sig=h&Api_Key=h": "https://models.test/v1?" +
			"a=b&X-Amz-Signature=[redacted]&sig=[redacted]&Api_Key=[redacted]",
		"https://models.test/v1?access%5Ftoken=hunter2;b=1": "https://models.test/v1?" +
			"access%5Ftoken=[redacted]&b=1",
		"https://models.test/v1#access_token=hunter2":       "https://models.test/v1",
		"https://models.test/sk-known%2F0123+456789/v1":     "https://models.test/%5Bredacted%5D/v1",
		"https://models.test/v1?q=sk-known%2f0123%2B456789": "https://models.test/v1?q=%5Bredacted%5D",
		"https://models.test/v1?q=%zzhunter2":               "https://models.test/v1?q=[redacted]",
		"mailto:hunter2":                                    "[left out: 14 bytes that are no URL]",
		"https://models.test/%zz?key=hunter2":               "[left out: 35 bytes that are no URL]",
		"/login?token=hunter2":                              "/login?token=[redacted]",
	} {
		check.Equal(t, in, want, redactor.URL(in))
	}
	check.Equal(t, "Location", "/login?token=[redacted]", redactor.Header("Location", "/login?token=hunter2"))
}

func TestBodies(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing to hide, as it was written": {`{ "model": "m",  "max_tokens": 77, "b": 1e3 }`,
			`{ "model": "m",  "max_tokens": 77, "b": 1e3 }`},
		"usage": {
			`{"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"input_token_count":4,"max_token":5,"completion_tokens_details":{"reasoning_tokens":0}}}`,
			`{"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"input_token_count":4,"max_token":5,"completion_tokens_details":{"reasoning_tokens":0}}}`,
		},
		"fields in their order": {`{"z":1,"token":"h","api_key":["h"],"apiKey":{"a":"h"},"a":2}`,
			`{"z":1,"token":"[redacted]","api_key":"[redacted]","apiKey":"[redacted]","a":2}`},
		"names that contain words": {
			`{"client_secret":"h","userPassword":"h","Proxy-Authorization":7,"aws_credentials":{"x":"h"},"github_token":"h"}`,
			`{"client_secret":"[redacted]","userPassword":"[redacted]","Proxy-Authorization":"[redacted]","aws_credentials":"[redacted]","github_token":"[redacted]"}`,
		},
		"a URL that lets a file be read": {
			`{"source":{"type":"url","url":"https://h/a.png?v=1&X-Amz-Credential=h&X-Amz-Signature=h"},"message":"cannot fetch https://h/a.png?sig=h: 403"}`,
			`{"source":{"type":"url","url":"https://h/a.png?v=1&X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]"},"message":"cannot fetch https://h/a.png?sig=[redacted] 403"}`,
		},
		"at any depth":    {`[[{"a":[{"b":{"password":"h"}}]}]]`, `[[{"a":[{"b":{"password":"[redacted]"}}]}]]`},
		"an escaped name": {`{"\u0074oken":"h"}`, `{"token":"[redacted]"}`},
		"arguments of a tool call": {`{"arguments":"{\"password\":\"h\",\"n\":1}"}`,
			`{"arguments":"{\"password\":\"[redacted]\",\"n\":1}"}`},
		"the key, and how it may be written": {
			`{"a":"x ` + key + ` y","b":"\u0073k-known\/0123+456789","` + key + `":1,"c":"sk-known%2F0123%2B456789"}`,
			`{"a":"x [redacted] y","b":"[redacted]","[redacted]":1,"c":"[redacted]"}`,
		},
		"server-sent events": {
			"event: message\ndata: {\"token\":\"h\"}\n\n: ping\nid: 7\nretry: 100\ndata: [DONE]\n\n",
			"event: message\ndata: {\"token\":\"[redacted]\"}\n\n: [left out: 4 bytes that are not data]\nid: [left out: 1 " +
				"bytes that are not data]\nretry: 100\ndata: [DONE]\n\n",
		},
		"server-sent events with an odd line": {"data: {\"a\":1}\r\ndata: hunter2\r\npassword\r\n",
			"data: {\"a\":1}\ndata: [left out: 7 bytes that are not JSON]\n[left out: 8 bytes that are not JSON]\n"},
		"lines of JSON":       {"{\"token\":\"h\"}\n{\"a\":1}\n", "{\"token\":\"[redacted]\"}\n{\"a\":1}\n"},
		"a page of a proxy":   {"<html>hunter2</html>", "[left out: 20 bytes that are not JSON]"},
		"a text in quotes":    {`"hunter2"`, "[left out: 9 bytes that are not JSON]"},
		"an empty body":       {"", ""},
		"a broken document":   {`{"token":"h"`, "[left out: 12 bytes that are not JSON]"},
		"two documents":       {`{"a":1}{"token":"h"}`, "[left out: 20 bytes that are not JSON]"},
		"bytes of any values": {"\x00\x01{", "[left out: 3 bytes that are not JSON]"},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "the body", c.want, redactor.Body(redact.Body{Kept: []byte(c.in), Total: int64(len(c.in))}, 1000))
		})
	}
}

func TestLongBodyIsCutOnlyBetweenLines(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b","to`:                           "[left out: 100 bytes that are more than 12]",
		"data: {\"token\":\"h\"}\n\ndata: {\"to": "data: {\"token\":\"[redacted]\"}\n\n[cut: 100 bytes in all]",
	} {
		check.Equal(t, in, want, redactor.Body(redact.Body{Kept: []byte(in), Total: 100}, 1000))
	}
	many := strings.Repeat("{\"token\":1}\n", 100)
	got := redactor.Body(redact.Body{Kept: []byte(many), Total: int64(len(many))}, 100)
	if len(got) > 150 || !strings.HasSuffix(got, "bytes in all]") {
		t.Errorf("got %s", got)
	}
}

func TestTextsWithoutSecretsKeepTheirForm(t *testing.T) {
	for in, want := range map[string]string{
		"what is " + key + "?":                     "what is [redacted]?",
		" {\n \"a\": 1 } ":                         " {\n \"a\": 1 } ",
		` { "password": "h" } `:                    `{"password":"[redacted]"}`,
		"the password is a word":                   "the password is a word",
		"see https://h/a?x=1&y=2#top, or http://h": "see https://h/a?x=1&y=2#top, or http://h",
		"https://h/a?x=1&sig=hunter2":              "https://h/a?x=1&sig=[redacted]",
		"![a](HTTPS://h/a?X-Amz-Signature=hunter2&X-Amz-Expires=9) and https://h/b#token=hunter2": "![a](https://h/a?" +
			"X-Amz-Signature=[redacted]&X-Amz-Expires=9) and https://h/b",
		"https://h/%zz?sig=hunter2": "[left out: 25 bytes that are no URL]",
	} {
		check.Equal(t, in, want, redactor.Text(in))
	}
	check.Equal(t, "without a key", "plain", (redact.Redactor{}).Text("plain"))
}
