// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
)

// secretHeader are words in the plain names of headers that hold secrets. "token" covers session, security and refresh
// tokens, "cookie" Set-Cookie, "authorization" Proxy-Authorization.
var secretHeader = []string{
	"apikey", "token", "secret", "bearer", "authorization", "cookie", "password", "credential", "signature",
	"subscriptionkey", "accesskey", "privatekey",
}

// tokenCount are headers that count tokens of text: rate limits, and what a call has used.
var tokenCount = regexp.MustCompile(
	`^(anthropic-ratelimit-[a-z-]*tokens-[a-z]+|x-ratelimit-[a-z-]*tokens[a-z-]*|x-amzn-bedrock-[a-z-]*token-count)$`)

// countOrTime is a number, a duration or a time, and nothing that could be a secret.
var countOrTime = regexp.MustCompile(`^[0-9][0-9.,:hmsunµTZ+-]{0,39}$`)

// scheme begins a value that authenticates, in whatever header.
var scheme = regexp.MustCompile(`(?i)^\s*(bearer|basic|digest|negotiate|token|apikey|aws4-hmac-sha256)\s`)

// Header returns the value of a header as it may be recorded.
func (r Redactor) Header(name, value string) string {
	if secretHeaderName(name, value) || scheme.MatchString(value) {
		return Mark
	}
	if strings.Contains(value, "://") || isURLHeader(name) {
		value = r.URL(value)
	}
	return r.replaceKnown(value)
}

func secretHeaderName(name, value string) bool {
	if tokenCount.MatchString(strings.ToLower(name)) && countOrTime.MatchString(value) {
		return false
	}
	return containsAny(plain(name), secretHeader)
}

func isURLHeader(name string) bool {
	switch plain(name) {
	case "location", "contentlocation", "referer", "link", "refresh":
		return true
	}
	return false
}
