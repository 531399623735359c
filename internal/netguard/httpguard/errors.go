// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard

import "fmt"

// ForbiddenHostError is a call that was not made, since models may not be called at its host.
type ForbiddenHostError struct{ Host string }

// Error implements error.
func (e *ForbiddenHostError) Error() string {
	return fmt.Sprintf("models may not be called at %s", e.Host)
}

// RedirectError is an answer that points to somewhere else.
type RedirectError struct {
	Status int
	// To is the scheme and the host that it names; empty if it names none that can be shown.
	To string
}

// Error implements error.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("the answer is a redirect to %s (%d), which is not followed", e.To, e.Status)
}

// OversizedError is an answer that is longer than any that is of use.
type OversizedError struct {
	Status int
	Limit  int64
}

// Error implements error.
func (e *OversizedError) Error() string {
	return fmt.Sprintf("the answer (%d) has more than %d bytes", e.Status, e.Limit)
}

// ProxyError is a call that a proxy did not connect to the host.
type ProxyError struct {
	// Proxy and Host are who refused, and whom it was to connect to.
	Proxy, Host string
	// Status is the proxy's answer.
	Status int
}

// Error implements error.
func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy %s did not connect to %s (%d)", e.Proxy, e.Host, e.Status)
}
