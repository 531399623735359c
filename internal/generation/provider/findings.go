// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"charm.land/fantasy"
)

// findings are what is known of an error, in no provider's shape. The rules look at nothing else.
type findings struct {
	// canceled and silence are the caller's: see Subject.
	canceled bool
	silence  time.Duration
	// status is the HTTP status of an answer that was an error, or the one that an error within a stream names; else 0.
	status int
	// contextTooLong and unauthenticated are what fantasy makes out.
	contextTooLong, unauthenticated bool
	// network is how the network ended the call, where the provider has not answered; host is whom it was to reach.
	network network
	host    string
	// notHanded is whether the request could not be made for the URLs of files in it.
	notHanded bool
	// truncated is whether the answer ended before its end, without an error.
	truncated bool
	// page is whether a web page came in place of an answer.
	page bool
	// answer is what the provider said.
	answer
	// text is what it said for comparisons: in small letters, without addresses, and not endless.
	text string
	// shouldRetry is what the provider says of trying again; nil: nothing.
	shouldRetry *bool
}

func find(err error, about Subject) *findings {
	f := &findings{canceled: about.Canceled, silence: about.Silence, notHanded: errors.Is(err, errNotHanded)}
	var told map[string]string
	switch e, ok := errors.AsType[*fantasy.ProviderError](err); {
	case ok:
		told = e.ResponseHeaders
		f.contextTooLong, f.unauthenticated = e.IsContextTooLarge(), e.AuthError
		f.answer = decode(e, about.Spec.Provider)
		f.status = errorStatus(e.StatusCode)
		if e.Cause != nil {
			err = e.Cause // fantasy's own words could be taken for the network's.
		}
	default:
		f.answer = decodeInStream(err)
	}
	f.text = comparable(f.said)
	told, f.page = about.HTTP.said(told)
	f.shouldRetry = shouldRetry(told)
	if wait := waitInHeaders(told, about.Now); wait > 0 {
		f.wait = wait
	} else if f.wait == 0 {
		f.wait = waitInText(f.text)
	}
	if f.status == 0 {
		f.status = errorStatus(f.number)
	}
	if f.status == 0 && f.empty() {
		f.network, f.host = networkOf(err, about.Spec.BaseURL)
		f.truncated = f.network == brokenOff && errors.Is(err, io.ErrUnexpectedEOF)
	}
	return f
}

// errorStatus is the number if it is an HTTP status of an error, else 0. Some are told in the body, which can say anything.
func errorStatus(number int) int {
	if number < http.StatusBadRequest || number > 599 {
		return 0
	}
	return number
}

// is tells whether one of these, in small letters, is the provider's name for the error.
func (f *findings) is(names ...string) bool {
	return slices.ContainsFunc(f.names, func(name string) bool { return slices.Contains(names, name) })
}

// says tells whether the provider's message has one of these, in small letters, in it.
func (f *findings) says(phrases ...string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(f.text, phrase) })
}

// has tells whether the status is one of these.
func (f *findings) has(statuses ...int) bool { return slices.Contains(statuses, f.status) }

// maxCompared is how much of a message is looked at: the point of an error is made early.
const maxCompared = 4 << 10

// address is a URL. Providers refer to pages about billing in messages about rates.
var address = regexp.MustCompile(`https?://\S+`)

func comparable(said string) string {
	return strings.ToLower(address.ReplaceAllString(said[:min(len(said), maxCompared)], ""))
}
