// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// maxWords is how many bytes a failure is told in: 200.
const maxWords = 200

// failure is why a server cannot be used, in words that can be shown: they name no address that a name leads to, and
// what the server says itself is cut, scrubbed and printable.
type failure struct {
	reason v1alpha1.MCPServerReason
	words  string
	// slow is whether it took a connect timeout to find out.
	slow bool
}

func (f *failure) Error() string { return f.words }

// failure implements line.
func (w *wire) failure(_ context.Context, err error, notes *httpguard.Notes, secrets scrubber) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if f := ofHost(err, w); f != nil {
		return f
	}
	status := int(w.status.Load())
	if oversized := notes.Oversized(); oversized != nil {
		return &failure{reason: v1alpha1.MCPResponseInvalid,
			words: fmt.Sprintf("its answer has more than %d bytes", oversized.Limit)}
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &failure{reason: v1alpha1.MCPAccessDenied, words: "it answered " + statusText(status)}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{reason: v1alpha1.MCPTimedOut, words: "it did not answer in time", slow: true}
	case status >= http.StatusBadRequest:
		return &failure{reason: v1alpha1.MCPConnectionFailed, words: "it answered " + statusText(status)}
	}
	if words := ofNetwork(err); words != "" {
		return &failure{reason: v1alpha1.MCPConnectionFailed, words: words}
	}
	if said := saidIn(err); said != "" {
		return &failure{reason: v1alpha1.MCPResponseInvalid, words: "it answered: " + scrubLine(said, secrets)}
	}
	return &failure{reason: v1alpha1.MCPResponseInvalid, words: "its answer is not of the Model Context Protocol"}
}

// saidIn is what the server itself says in an error; empty if it says nothing. The protocol's library has errors of its
// own that look like a server's.
func saidIn(err error) string {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || said.Message == "rejected by transport" {
		return ""
	}
	return said.Message
}

// ofHost is a failure because of the host that would be called; nil if it is none.
func ofHost(err error, w *wire) *failure {
	if redirect, ok := errors.AsType[*httpguard.RedirectError](err); ok {
		return &failure{reason: v1alpha1.MCPHostForbidden,
			words: fmt.Sprintf("it redirects (%d), which is not followed: name the url that it leads to", redirect.Status)}
	}
	if _, ok := errors.AsType[*httpguard.ForbiddenHostError](err); ok {
		return &failure{reason: v1alpha1.MCPHostForbidden, words: "its host is an address of the node or of the pod"}
	}
	if strayed := w.strayed.Load(); strayed != nil {
		return &failure{reason: v1alpha1.MCPHostForbidden, words: strayed.Error()}
	}
	return nil
}

// ofNetwork is what is wrong with the connection; empty if that is not what the error is about.
func ofNetwork(err error) string {
	var name *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var other net.Error
	switch {
	case errors.As(err, &name):
		return "the name of its host does not resolve"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "its host refuses the connection"
	case errors.As(err, &untrusted):
		return "its certificate is not trusted"
	case errors.As(err, &other):
		return "it cannot be reached"
	}
	return ""
}

func statusText(status int) string { return fmt.Sprintf("%d %s", status, http.StatusText(status)) }

// scrubLine returns a text of a server in one line, without secrets and at most maxWords long.
func scrubLine(text string, secrets scrubber) string {
	return clip.Ellipsis(printable.Line(secrets.scrub(text)), maxWords)
}
