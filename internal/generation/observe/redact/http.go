// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// tokenCount are headers that count tokens of text: rate limits, and what a call has used.
var tokenCount = regexp.MustCompile(
	`^(anthropic-ratelimit-[a-z-]*tokens-[a-z]+|x-ratelimit-[a-z-]*tokens[a-z-]*|x-amzn-bedrock-[a-z-]*token-count)$`)

// countOrTime is a number, a duration or a time.
var countOrTime = regexp.MustCompile(`^[0-9][0-9.,:hmsunµTZ+-]{0,39}$`)

// scheme begins a value that authenticates, in whatever header.
var scheme = regexp.MustCompile(`(?i)^\s*(bearer|basic|digest|negotiate|token|apikey|aws4-hmac-sha256)\s`)

// Header returns the value of a header as it may be recorded.
func (r Redactor) Header(name, value string) string {
	isCount := tokenCount.MatchString(strings.ToLower(name)) && countOrTime.MatchString(value)
	if !isCount && containsAny(plain(name), secretHTTPWords) || scheme.MatchString(value) {
		return Mark
	}
	if strings.Contains(value, "://") || slices.Contains(urlHeaders, plain(name)) {
		value = r.URL(value)
	}
	return r.replaceKnown(value)
}

var urlHeaders = []string{"location", "contentlocation", "referer", "link", "refresh"}

// secretParameters are whole names of query parameters that hold secrets, in addition to secretHTTPWords.
var secretParameters = []string{"key", "sig", "auth", "code", "jwt", "pwd", "pass", "sas", "hmac"}

// URL returns a URL as it may be recorded: without user and fragment, and with secret parameters redacted.
func (r Redactor) URL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return leftOut(len(raw), "that are no URL")
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	if path := r.replaceKnown(u.Path); path != u.Path {
		u.Path, u.RawPath = path, ""
	}
	u.RawQuery = r.query(u.RawQuery)
	return r.replaceKnown(u.String())
}

// address is a URL in a text, with a query or a fragment: only those can hold a secret by its name.
var address = regexp.MustCompile(`(?i)https?://[^\s"'<>\\?#]+[?#][^\s"'<>\\]*`)

// addresses takes the secrets out of the URLs in a text, such as the signature that gives access to a file. URLs
// without secrets stay unchanged.
func (r Redactor) addresses(text string) string {
	if !strings.Contains(text, "://") { // The expression took most of the time of a recording.
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

// query keeps the order of the parameters, and accepts what url.ParseQuery refuses.
func (r Redactor) query(raw string) string {
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
	if err != nil || isSecretParameter(plainName) {
		return r.replaceKnown(name) + "=" + Mark
	}
	cleanName, cleanValue := r.replaceKnown(plainName), r.replaceKnown(decoded)
	if cleanName == plainName && cleanValue == decoded {
		return whole
	}
	return url.QueryEscape(cleanName) + "=" + url.QueryEscape(cleanValue)
}

func isSecretParameter(name string) bool {
	p := plain(name)
	return slices.Contains(secretParameters, p) || containsAny(p, secretHTTPWords)
}
