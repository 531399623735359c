// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/netguard/httpguard"
)

// findings are what is known of an error, in no provider's shape. The rules look at nothing else.
type findings struct {
	// canceled and silence are the caller's: see Subject.
	canceled bool
	silence  time.Duration
	// status is the HTTP status of an answer that was an error, or the one that an error within a stream names; else 0.
	status int
	// unauthenticated is whether the call was not made because it could not be signed.
	unauthenticated bool
	// lost is the error of a call that the provider has not answered; nil: it has. host is what was to be reached.
	lost error
	host string
	// forbiddenHost is whether models may not be called at host, so that it was not called.
	forbiddenHost bool
	// proxy is what a proxy answered that did not connect to host; nil: none did.
	proxy *httpguard.ProxyError
	// login is a login that failed before the call; nil: there was none such.
	login *LoginError
	// reply is a reply that answers nothing; nil: the call failed otherwise.
	reply *finish.Error
	// page is whether a web page came in place of an answer.
	page bool
	// redirect and oversized are answers that were not read; nil: there was none such.
	redirect  *httpguard.RedirectError
	oversized *httpguard.OversizedError
	// answer is the provider's own error.
	answer
	// text is its message for comparisons: in small letters, without addresses, and not endless.
	text string
	// shouldRetry is whether the provider wants a retry; nil: unknown.
	shouldRetry *bool
}

// find makes out of an error what the rules ask for.
func find(err error, about Subject) *findings {
	f := &findings{canceled: about.Canceled, silence: about.Silence}
	if f.unread(err, about.HTTP) {
		return f
	}
	var headers map[string]string
	if e, ok := errors.AsType[*fantasy.ProviderError](err); ok {
		headers = e.ResponseHeaders
		f.unauthenticated = e.AuthError
		f.answer = decode(e, about.Spec.Provider)
		f.status = errorStatus(e.StatusCode)
	}
	f.text, f.cause = normalize(f.message), normalize(f.cause)
	headers, f.page = about.HTTP.Said(headers)
	f.shouldRetry = shouldRetry(headers)
	if wait := waitInHeaders(headers, about.Now); wait > 0 {
		f.wait = wait
	} else if f.wait == 0 {
		f.wait = waitInText(f.text)
	}
	if f.status == 0 {
		f.status = errorStatus(f.number)
	}
	if f.status == 0 && f.empty() {
		f.lost, f.host = err, hostOf(err, about.Spec.BaseURL)
	}
	return f
}

// unread finds a call that was not made, or an answer that was not read, of which nothing else is known.
func (f *findings) unread(err error, notes *httpguard.Notes) bool {
	if errors.As(err, &f.reply) {
		return true
	}
	if errors.As(err, &f.login) {
		f.status = errorStatus(f.login.Status)
		return true
	}
	if e, ok := errors.AsType[*httpguard.ForbiddenHostError](err); ok {
		f.host, f.forbiddenHost = e.Host, true
		return true
	}
	if errors.As(err, &f.proxy) {
		if f.status = f.proxy.Status; httpguard.Showable(f.proxy.Host) {
			f.host = f.proxy.Host
		}
		return true
	}
	f.redirect, _ = errors.AsType[*httpguard.RedirectError](err)
	if f.oversized, _ = errors.AsType[*httpguard.OversizedError](err); f.oversized == nil {
		f.oversized = notes.Oversized()
	}
	switch {
	case f.redirect != nil:
		f.status, f.host = f.redirect.Status, cmp.Or(f.redirect.To, "another address")
	case f.oversized != nil:
		f.status = errorStatus(f.oversized.Status)
	}
	return f.redirect != nil || f.oversized != nil
}

// errorStatus is the number if it is an HTTP status of an error, else 0. A number in a body can be anything.
func errorStatus(number int) int {
	if number < http.StatusBadRequest || number > 599 {
		return 0
	}
	return number
}

// is reports whether one of these, in small letters, is the provider's name for the error.
func (f *findings) is(names ...string) bool {
	return slices.ContainsFunc(f.names, func(name string) bool { return slices.Contains(names, name) })
}

// mentions reports whether the provider's message contains one of these phrases, which are in small letters.
func (f *findings) mentions(phrases ...string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(f.text, phrase) })
}

// tells is mentions, also of what a gateway was told by the provider that it asked: that can be JSON, and about the
// gateway's own account.
func (f *findings) tells(phrases ...string) bool {
	return f.mentions(phrases...) ||
		slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(f.cause, phrase) })
}

// has reports whether the status is one of these.
func (f *findings) has(statuses ...int) bool { return slices.Contains(statuses, f.status) }

// maxCompared is how much of a message is looked at: the point of an error is made early.
const maxCompared = 4 << 10

// webAddress is a URL. Providers refer to pages about billing in messages about rates.
var webAddress = regexp.MustCompile(`https?://\S+`)

// normalize returns a message for comparisons.
func normalize(message string) string {
	return strings.ToLower(webAddress.ReplaceAllString(message[:min(len(message), maxCompared)], ""))
}
