// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"parley.dev/parley/internal/approval/toolpolicy"
)

const (
	// maxName is how many characters a tool's name has at most, as OpenAI and Anthropic take it: 64.
	maxName = 64
	// hashed is how many hexadecimal digits of its hash a name ends with that the server's own one does not fit in.
	hashed = 8
)

var (
	// unfit are characters that names of tools cannot have.
	unfit = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	// looksHashed are names that end as one with a hash does.
	looksHashed = regexp.MustCompile(`_[0-9a-f]{8}$`)
)

// offeredName is what the model calls a tool: SERVER__TOOL. Where that has other characters than letters, digits, _ and
// -, or more than 64 of them, or ends as if this had been done to it, the others become _, it is cut, and _ with 8
// hexadecimal digits of the hash of the tool's own name ends it. So a name depends on nothing but those of its server
// and itself, and no two tools share one.
func offeredName(server, tool string) string {
	whole := server + toolpolicy.ServerSeparator + tool
	if tool != "" && len(whole) <= maxName && !unfit.MatchString(tool) && !looksHashed.MatchString(tool) {
		return whole
	}
	sum := sha256.Sum256([]byte(tool))
	whole = server + toolpolicy.ServerSeparator + unfit.ReplaceAllString(tool, "_")
	return whole[:min(len(whole), maxName-1-hashed)] + "_" + hex.EncodeToString(sum[:])[:hashed]
}

// ServerOf is the server that the name of a tool belongs to; empty if it can be none's.
func ServerOf(tool string) string {
	server, _, found := strings.Cut(tool, toolpolicy.ServerSeparator)
	if !found {
		return ""
	}
	return server
}
