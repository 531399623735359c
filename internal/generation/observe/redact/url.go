// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// secretQuery are words in the plain names of query parameters that hold secrets; secretQueryName are whole names.
var (
	secretQuery = []string{"apikey", "token", "secret", "password", "passwd", "credential", "signature", "accesskey",
		"authorization", "privatekey"}
	secretQueryName = map[string]bool{"key": true, "sig": true, "auth": true, "code": true, "jwt": true, "bearer": true,
		"pwd": true, "pass": true, "sas": true, "hmac": true}
)

// URL returns a URL as it may be recorded: without user and fragment,
// and with the values of secret parameters redacted.
func (r Redactor) URL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return leftOut(len(raw), "that are no URL")
	}
	if u.User != nil {
		u.User = nil
	}
	u.Fragment, u.RawFragment = "", ""
	if path := r.replaceKnown(u.Path); path != u.Path {
		u.Path, u.RawPath = path, ""
	}
	u.RawQuery = r.query(u.RawQuery)
	return r.replaceKnown(u.String())
}

// address is a URL in a text, with a query or a fragment: the rest holds no secret by its name.
var address = regexp.MustCompile(`(?i)https?://[^\s"'<>\\?#]+[?#][^\s"'<>\\]*`)

// addresses takes the secrets out of the URLs in a text, such as the signature of one that lets a file be read. The
// others stay as they are.
func (r Redactor) addresses(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return address.ReplaceAllStringFunc(text, func(raw string) string {
		clean := r.URL(raw)
		_, fragment, _ := strings.Cut(raw, "#")
		if strings.Contains(clean, Mark) || strings.Contains(fragment, "=") || !strings.Contains(clean, "://") {
			return clean
		}
		return raw
	})
}

// query keeps the order of the parameters, and understands what url.ParseQuery refuses.
func (r Redactor) query(raw string) string {
	if raw == "" {
		return ""
	}
	parameters := strings.FieldsFunc(raw, func(c rune) bool { return c == '&' || c == ';' })
	for i, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		parameters[i] = r.parameter(name, value, parameter)
	}
	return strings.Join(parameters, "&")
}

func (r Redactor) parameter(name, value, whole string) string {
	plainName, err := url.QueryUnescape(name)
	if err != nil {
		return Mark
	}
	decoded, err := url.QueryUnescape(value)
	if err != nil || secretParameter(plainName) {
		return r.replaceKnown(name) + "=" + Mark
	}
	cleanName, cleanValue := r.replaceKnown(plainName), r.replaceKnown(decoded)
	if cleanName == plainName && cleanValue == decoded {
		return whole
	}
	return url.QueryEscape(cleanName) + "=" + url.QueryEscape(cleanValue)
}

func secretParameter(name string) bool {
	p := plain(name)
	return secretQueryName[p] || containsAny(p, secretQuery)
}
