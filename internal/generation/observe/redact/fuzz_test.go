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
)

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
