// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact takes secrets out of HTTP exchanges with providers before they are recorded.
//
// Invariant: a Redactor returns nothing that is a secret by its place (a header, a query parameter, a JSON field) or by
// its value (the API key). It omits what it cannot parse. It knows no client and no clock.
package redact

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Mark stands in place of a secret.
const Mark = "[redacted]"

// secretWords are parts of plain names that hold secrets. In JSON, "token" is none of them: prompt_tokens is a count.
var secretWords = []string{
	"secret", "password", "passwd", "passphrase", "authorization", "credential", "apikey", "privatekey",
}

// secretHTTPWords are those of headers and query parameters. "token" covers session, security and refresh tokens.
var secretHTTPWords = append(slices.Clone(secretWords),
	"token", "bearer", "cookie", "signature", "subscriptionkey", "accesskey")

// Redactor takes secrets out. The zero Redactor knows no key by its value.
type Redactor struct {
	// forms are those of the known keys, and known replaces them.
	forms []string
	known *strings.Replacer
}

// New returns a Redactor that also takes out these keys, in plain text and as URLs and JSON write them.
func New(keys ...string) Redactor {
	var all []string
	for _, key := range keys {
		all = append(all, forms(key)...)
	}
	// The first match wins: a key must not leave the rest of a longer one.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(all))
	for _, form := range all {
		pairs = append(pairs, form, Mark)
	}
	return Redactor{forms: all, known: strings.NewReplacer(pairs...)}
}

func forms(key string) []string {
	if key == "" {
		return nil
	}
	all := []string{key, url.QueryEscape(key), url.PathEscape(key)}
	if quoted, err := json.Marshal(key); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	return all
}

// replaceKnown takes out the keys that are known by their value.
func (r Redactor) replaceKnown(text string) string {
	if !containsAny(text, r.forms) { // Much faster than the replacer.
		return text
	}
	return r.known.Replace(text)
}

// leftOut is the remark in place of something that is not recorded.
func leftOut(bytes int, why string) string {
	return fmt.Sprintf("[left out: %d bytes %s]", bytes, why)
}

// plain is a name without case and separators, so that X-Api-Key, api_key and apiKey are one.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '-' || c == '_' || c == '.' || c == ' ':
			return -1
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		}
		return c
	}, name)
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
