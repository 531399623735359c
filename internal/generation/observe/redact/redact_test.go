// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
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
		"Content-Type": "application/json", "Request-Id": "req_011CSHoEeqs5C35K2UUqR7Fy", "User-Agent": "parley/v1beta1",
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
		"numbers that are secrets": {`{"session_token":7,"authToken":8,"github_token":9}`,
			`{"session_token":"[redacted]","authToken":"[redacted]","github_token":9}`},
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

// FuzzRedact plants secrets wherever they are known to stand, among whatever else there may be, and looks for them in
// what is recorded.
func FuzzRedact(f *testing.F) {
	f.Add("seed", "filler", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add("", "{\"a\":\"", []byte("\xff\x80[{nested}]"))
	f.Add("x", "data: \r\n\r", []byte("data: \n\n"))
	f.Add("é", "https://u:p@h/?token=", []byte{255, 254, 128, 64, 32})
	f.Add("k", "\\u0073\"}", bytes.Repeat([]byte{5, 6}, 40))
	f.Fuzz(func(t *testing.T, seed, filler string, plan []byte) {
		sum := sha256.Sum256([]byte(seed))
		p := &planter{
			t: t, plan: plan, filler: filler,
			secret: "Zq9" + hex.EncodeToString(sum[:8]),
			key: "sk-" + hex.EncodeToString(sum[8:12]) + []string{"", "/+=", `"\<&>`, " é%"}[sum[0]%4] +
				hex.EncodeToString(sum[12:16]),
		}
		p.redactor = redact.New(p.key)
		p.headers()
		p.urls()
		document := p.document()
		p.body("JSON", document)
		p.body("what is no JSON", filler+"\x00"+filler+p.secret)
		p.lines()
		p.text(document)
	})
}

// planter plants a secret, which only its place gives away, and the known key.
type planter struct {
	t           *testing.T
	redactor    redact.Redactor
	secret, key string
	filler      string
	plan        []byte
	at          int
}

// next is the next choice out of n.
func (p *planter) next(n int) int {
	if len(p.plan) == 0 {
		return 0
	}
	p.at++
	return (int(p.plan[p.at%len(p.plan)]) + p.at/len(p.plan)) % n
}

// clean fails if the secret or the key is in the result, as it stands or once it is decoded.
func (p *planter) clean(where, in, out string) {
	p.t.Helper()
	for _, line := range append(strings.Split(out, "\n"), out) {
		var decoded any
		text := line
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &decoded) == nil {
			text += fmt.Sprint(decoded)
		}
		if unescaped, err := url.QueryUnescape(line); err == nil {
			text += unescaped
		}
		if unescaped, err := url.PathUnescape(line); err == nil {
			text += unescaped
		}
		if strings.Contains(text, p.secret) || strings.Contains(text, p.key) {
			p.t.Fatalf("%s: %q became %q", where, in, out)
		}
	}
}

func (p *planter) oddCase(name string) string {
	if p.next(2) == 1 {
		return strings.ToUpper(name)
	}
	return name
}

func (p *planter) headers() {
	for _, name := range []string{
		"authorization", "x-api-key", "api-key", "x-goog-api-key", "proxy-authorization", "cookie", "set-cookie",
		p.filler + "-api-key", "x-token-" + p.filler, p.filler + "secret" + p.filler, "bearer" + p.filler,
		"anthropic-ratelimit-tokens-remaining", "x-ratelimit-remaining-tokens",
	} {
		value := p.filler + p.secret + p.filler
		p.clean("header "+name, value, p.redactor.Header(p.oddCase(name), value))
	}
	for _, value := range []string{p.filler + p.key, "Bearer " + p.secret, "https://u:" + p.secret + "@h/?sig=" +
		p.secret} {
		p.clean("header value", value, p.redactor.Header("X-Filler", value))
	}
	for _, count := range []string{"0", "39000", "6m0s", "2026-01-01T00:00:00Z"} {
		if got := p.redactor.Header(p.oddCase("X-Ratelimit-Remaining-Tokens"), count); got != count {
			p.t.Fatalf("the count %s became %s", count, got)
		}
	}
}

func (p *planter) urls() {
	escaped := url.QueryEscape(p.filler)
	name := []string{"key", "api_key", "token", "sig", "signature", "access_token", "X-Amz-Credential", "ToKeN",
		"%74oken"}[p.next(9)]
	for _, in := range []string{
		"https://user:" + p.secret + "@models.test/" + escaped,
		"https://" + p.secret + "@models.test/?a=" + escaped,
		"https://models.test/" + url.PathEscape(p.filler) + "?" + escaped + "=1&" + name + "=" + p.secret + "&b=" + escaped,
		"https://models.test/?a=" + p.filler + "&" + name + "=" + p.secret,
		"https://models.test/v1?q=" + url.QueryEscape(p.filler+p.key),
		"https://models.test/" + url.PathEscape(p.key) + "/" + escaped,
		"https://models.test/#token=" + p.secret,
	} {
		if strings.Contains(in, "?a="+p.filler) && strings.ContainsAny(p.filler, "#") {
			continue // Then what follows is a fragment, which goes as a whole.
		}
		p.clean("URL", in, p.redactor.URL(in))
	}
}

// document is JSON of any form with secrets in it.
func (p *planter) document() string {
	return `{"usage":{"prompt_tokens":12345},` + p.field(0) + `,` + p.secretField() + `}`
}

func (p *planter) field(depth int) string {
	name := quote(p.filler)
	if depth > 6 || p.at > 200 {
		return name + `:null`
	}
	switch p.next(8) {
	case 0:
		return name + `:{` + p.field(depth+1) + `,` + p.secretField() + `}`
	case 1:
		return name + `:[1,{` + p.field(depth+1) + `},` + quote(p.key) + `]`
	case 2:
		return p.secretField() + ` , ` + p.field(depth+1)
	case 3:
		return name + `:` + quote(p.filler+p.key+p.filler)
	case 4:
		return `"arguments":` + quote(`{`+p.field(depth+1)+`,`+p.secretField()+`}`)
	case 5:
		return quote(p.key) + `:` + quote(p.filler)
	case 6:
		return name + `:` + escapeAll(p.key)
	}
	return name + `:-1.5e3`
}

// secretField is a field with a secret of any form.
func (p *planter) secretField() string {
	name := []string{
		"token", "api_key", "apiKey", "API-KEY", "access_token", p.filler + "secret", "Password" + p.filler, "authorization",
		"Credential", p.filler + "credentials" + p.filler, "\u0074oken",
	}[p.next(11)]
	value := []string{
		quote(p.secret), quote(p.filler + p.secret), `["` + p.secret + `"]`, `{"a":{"b":["` + p.secret + `"]}}`,
	}[p.next(4)]
	written := quote(name)
	if p.next(3) == 0 {
		written = escapeAll(name)
	}
	return written + `:` + value
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// escapeAll writes every character in its longest form.
func escapeAll(s string) string {
	var out strings.Builder
	for _, c := range s {
		if c > 0xffff {
			return quote(s)
		}
		fmt.Fprintf(&out, `\u%04x`, c)
	}
	return `"` + out.String() + `"`
}

// body redacts a body, whole and cut off anywhere.
func (p *planter) body(what, in string) {
	kept := []byte(in)
	whole := p.redactor.Body(redact.Body{Kept: kept, Total: int64(len(kept))}, 1<<20)
	p.clean(what, in, whole)
	if what == "JSON" && !strings.Contains(whole, `"prompt_tokens":12345`) {
		p.t.Fatalf("the usage is gone: %q became %q", in, whole)
	}
	for range 3 {
		end := p.next(256) * len(kept) / 256
		p.clean(what+", cut", in[:end], p.redactor.Body(redact.Body{Kept: kept[:end], Total: int64(len(kept))}, 1<<20))
	}
	p.clean(what+", short", in, p.redactor.Body(redact.Body{Kept: kept, Total: int64(len(kept))}, p.next(256)))
}

// lines are server-sent events and lines of JSON with secrets in them, and what is neither in between.
func (p *planter) lines() {
	var events, lines strings.Builder
	end := []string{"\n", "\r\n", "\r"}[p.next(3)]
	for range 3 {
		odd := strings.NewReplacer("\r", "", "\n", "").Replace(p.filler)
		document := p.document()
		fmt.Fprintf(&events, "event: e%sdata: %s%s%s%s", end, document, end, end,
			[]string{"data: " + odd + p.secret, "data: [DONE]", "event: " + p.secret, ": " + p.secret,
				odd + p.secret}[p.next(5)]+end)
		fmt.Fprintf(&lines, "%s%s", document, end)
	}
	p.body("server-sent events", events.String())
	p.body("lines of JSON", lines.String())
}

// text looks at what people and models say: JSON in it, and the key.
func (p *planter) text(document string) {
	address := "https://h/a?x=1&sig=" + p.secret
	for _, in := range []string{document, p.filler + p.key + p.filler, " " + document + "\n",
		p.filler + " " + address + " " + p.filler, `{"a":` + quote(address+p.filler) + `}`} {
		p.clean("text", in, p.redactor.Text(in))
	}
}
