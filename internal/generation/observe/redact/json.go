// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// secretField are words in the plain names of JSON fields that hold secrets; secretFieldName are whole names. Counts of
// tokens, such as prompt_tokens and max_tokens, are none of them.
var (
	secretField = []string{"secret", "password", "passwd", "passphrase", "authorization", "credential", "apikey",
		"privatekey"}
	secretFieldName = map[string]bool{
		"token": true, "accesstoken": true, "refreshtoken": true, "idtoken": true, "authtoken": true, "sessiontoken": true,
		"securitytoken": true, "bearertoken": true, "bearer": true, "jwt": true, "cookie": true, "setcookie": true,
		"accesskey":   true,
		"accesskeyid": true, "auth": true, "pwd": true,
	}
)

// redactJSON returns an object or a list without secrets: as it is if it holds none, else written again with its fields
// in the same order. It returns false if raw is something else.
func (r Redactor) redactJSON(raw []byte) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' || !json.Valid(raw) {
		return "", false
	}
	w := jsonWriter{redactor: r, in: json.NewDecoder(bytes.NewReader(raw))}
	w.in.UseNumber()
	if err := w.value(""); err != nil {
		return "", false
	}
	if !w.changed {
		return string(raw), true
	}
	return w.out.String(), true
}

// jsonWriter copies a document from in to out.
type jsonWriter struct {
	redactor Redactor
	in       *json.Decoder
	out      strings.Builder
	// changed reports whether out differs from in by more than how it is written.
	changed bool
}

// value copies the next value, which a field of the name has; none, if it is in a list.
func (w *jsonWriter) value(field string) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		return w.container(v)
	case string:
		clean := w.redactor.Text(v)
		if endsInToken(field) {
			clean = Mark
		}
		w.text(v, clean)
	case json.Number:
		w.number(v.String())
	case bool:
		w.out.WriteString(map[bool]string{true: "true", false: "false"}[v])
	default:
		w.out.WriteString("null")
	}
	return nil
}

// container copies a list or an object, whose opening delimiter was read.
func (w *jsonWriter) container(open json.Delim) error {
	w.out.WriteString(open.String())
	for first := true; w.in.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		if err := w.element(open == '{'); err != nil {
			return err
		}
	}
	end, err := w.in.Token()
	if err != nil {
		return err
	}
	w.out.WriteString(end.(json.Delim).String())
	return nil
}

func (w *jsonWriter) element(named bool) error {
	if !named {
		return w.value("")
	}
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	name := token.(string)
	w.text(name, w.redactor.replaceKnown(name))
	w.out.WriteByte(':')
	if !secretFieldNamed(name) {
		return w.value(name)
	}
	var skipped json.RawMessage
	if err := w.in.Decode(&skipped); err != nil {
		return err
	}
	w.text("", Mark)
	return nil
}

func secretFieldNamed(name string) bool {
	p := plain(name)
	return secretFieldName[p] || containsAny(p, secretField)
}

// endsInToken are fields such as github_token: a secret if they hold a text, not if they hold a number.
func endsInToken(name string) bool { return strings.HasSuffix(plain(name), "token") }

// text writes what is left of a text.
func (w *jsonWriter) text(was, s string) {
	w.changed = w.changed || was != s
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(s) != nil {
		return // Cannot happen: every string can be encoded.
	}
	w.out.WriteString(strings.TrimSuffix(buffer.String(), "\n"))
}

// number copies a number; one that holds a known key becomes a text.
func (w *jsonWriter) number(n string) {
	if clean := w.redactor.replaceKnown(n); clean != n {
		w.text(n, clean)
		return
	}
	w.out.WriteString(n)
}

// Text returns a text of the conversation as it may be recorded: without known keys, without the secrets of the URLs in
// it and, where it is JSON, as arguments of tool calls are, without secret fields. JSON within JSON ends by itself:
// each level doubles the escapes of the one below.
func (r Redactor) Text(s string) string {
	if clean, ok := r.redactJSON([]byte(s)); ok && clean != strings.TrimSpace(s) {
		return r.replaceKnown(clean)
	}
	return r.addresses(r.replaceKnown(s))
}
