// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"io"
	"strings"
)

// redactJSON returns an object or a list without secrets: unchanged if it holds none, else in compact form with its
// fields in the same order. ok is false for anything else.
func (r Redactor) redactJSON(raw []byte) (clean string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' || !json.Valid(raw) {
		return "", false
	}
	// The document is as lenient as json.Valid.
	names, utf8 := jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)
	var out strings.Builder
	changed, err := r.copyJSON(jsontext.NewDecoder(bytes.NewReader(raw), names, utf8),
		jsontext.NewEncoder(&out, names, utf8))
	switch {
	case err != nil:
		return "", false
	case !changed:
		return string(raw), true
	}
	return strings.TrimSuffix(out.String(), "\n"), true
}

// copyJSON copies a document without its secrets, and reports whether it had any.
func (r Redactor) copyJSON(in *jsontext.Decoder, out *jsontext.Encoder) (changed bool, err error) {
	for {
		token, err := in.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return changed, nil
		case err != nil:
			return false, err
		}
		parent, index := in.StackIndex(in.StackDepth())
		isName := parent == jsontext.KindBeginObject && index%2 == 1
		text := token.String()
		if clean := r.redactToken(token.Kind(), text, isName); clean != text {
			token, changed = jsontext.String(clean), true
		}
		if err := out.WriteToken(token); err != nil {
			return false, err
		}
		if !isName || !isSecretField(text, in.PeekKind()) {
			continue
		}
		if err := errors.Join(in.SkipValue(), out.WriteToken(jsontext.String(Mark))); err != nil {
			return false, err
		}
		changed = true
	}
}

func (r Redactor) redactToken(kind jsontext.Kind, text string, isName bool) string {
	switch {
	case isName || kind == jsontext.KindNumber:
		return r.replaceKnown(text)
	case kind == jsontext.KindString:
		return r.Text(text)
	}
	return text
}

// secretFields are whole names of JSON fields that hold secrets, in addition to secretWords.
var secretFields = map[string]bool{
	"token": true, "accesstoken": true, "refreshtoken": true, "idtoken": true, "authtoken": true, "sessiontoken": true,
	"securitytoken": true, "bearertoken": true, "bearer": true, "jwt": true, "cookie": true, "setcookie": true,
	"accesskey": true, "accesskeyid": true, "auth": true, "pwd": true,
}

// isSecretField reports whether a field holds a secret. github_token does, unless it is a number: that counts tokens.
func isSecretField(name string, kind jsontext.Kind) bool {
	p := plain(name)
	return secretFields[p] || containsAny(p, secretWords) || strings.HasSuffix(p, "token") &&
		(kind == jsontext.KindString || kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray)
}

// Text returns a text of the conversation as it may be recorded: without known keys, without the secrets of its URLs
// and, if it is JSON such as the arguments of a tool call, without secret fields. Each level of JSON within JSON
// doubles the escapes of the level below, so the recursion ends.
func (r Redactor) Text(s string) string {
	if clean, ok := r.redactJSON([]byte(s)); ok && clean != strings.TrimSpace(s) {
		return r.replaceKnown(clean)
	}
	return r.addresses(r.replaceKnown(s))
}
