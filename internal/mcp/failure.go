// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// maxWords is the maximum length of a failure's text.
const maxWords = 200

// failure is why a server cannot be used. Its text names no IP address, and what it quotes of the server is shortened,
// scrubbed and printable.
type failure struct {
	reason v1beta1.MCPServerReason
	words  string
	// slow means that the failure took a connect timeout.
	slow bool
}

func (f *failure) Error() string { return f.words }

func fail(reason v1beta1.MCPServerReason, format string, args ...any) *failure {
	return &failure{reason: reason, words: clip.Ellipsis(fmt.Sprintf(format, args...), maxWords)}
}

// timedOut is a failure that took a connect timeout.
func timedOut(words string) *failure {
	return &failure{reason: v1beta1.MCPTimedOut, words: words, slow: true}
}

// serverMessage is the message of the server in an error; empty if there is none. The protocol's library has errors of
// the same type.
func serverMessage(err error) string {
	message, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || message.Message == "rejected by transport" {
		return ""
	}
	return message.Message
}

// scrubLine returns a text of a server in one line, without secrets and at most maxWords long.
func scrubLine(text string, secrets scrubber) string {
	return clip.Ellipsis(printable.Line(secrets.scrub(text)), maxWords)
}

const (
	// minSecret is the minimum length of a secret. Shorter values also occur in unrelated texts.
	minSecret = 8
	// redacted replaces a secret.
	redacted = "[secret]"
)

// scrubber removes secrets from texts, also those that JSON escapes. The zero scrubber removes none.
type scrubber struct{ replacer *strings.Replacer }

func newScrubber(values []string) scrubber {
	var pairs []string
	// The longest first, so that no rest remains of one that begins with another.
	values = slices.SortedFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		if len(value) < minSecret {
			continue
		}
		pairs = append(pairs, value, redacted)
		if escaped, err := json.Marshal(value); err == nil {
			if inner := string(escaped[1 : len(escaped)-1]); inner != value {
				pairs = append(pairs, inner, redacted)
			}
		}
	}
	if pairs == nil {
		return scrubber{}
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

func (s scrubber) scrub(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}
