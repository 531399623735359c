// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"parley.dev/parley/internal/text/clip"
)

// Body is as much of an HTTP body as was kept.
type Body struct {
	// Kept is its beginning.
	Kept []byte
	// Total is how long it is, so far as it was read: at least the length of Kept.
	Total int64
}

// whole reports whether nothing is missing.
func (b Body) whole() bool { return b.Total <= int64(len(b.Kept)) }

// Body returns a body as it may be recorded: JSON, and line by line server-sent events and lines of JSON. Of these, one
// that is longer than what was kept is cut; of anything else, a remark says how long it was. The result has at most
// limit bytes and a remark.
func (r Redactor) Body(b Body, limit int) string {
	if b.Total == 0 {
		return ""
	}
	if b.whole() {
		if clean, ok := r.redactJSON(b.Kept); ok {
			return cut(r.replaceKnown(clean), limit)
		}
	}
	if clean, ok := r.lines(b); ok {
		return cut(clean, limit)
	}
	if !b.whole() {
		return leftOut(int(b.Total), fmt.Sprintf("that are more than %d", len(b.Kept)))
	}
	return leftOut(int(b.Total), "that are not JSON")
}

// cut cuts what is redacted already.
func cut(clean string, limit int) string {
	if len(clean) <= limit {
		return clean
	}
	return clip.Bytes(clean, limit) + fmt.Sprintf("\n[cut: %d bytes in all]", len(clean))
}

// lines redacts server-sent events or lines of JSON; false, if the body is neither.
func (r Redactor) lines(b Body) (string, bool) {
	kept := b.Kept
	if !b.whole() { // The last line is not whole.
		kept = kept[:bytes.LastIndexAny(kept, "\r\n")+1]
	}
	var out strings.Builder
	known := false
	for len(kept) > 0 {
		line, rest := nextLine(kept)
		kept = rest
		clean, understood := r.line(line)
		known = known || understood
		out.WriteString(clean)
		out.WriteByte('\n')
	}
	if !b.whole() {
		fmt.Fprintf(&out, "[cut: %d bytes in all]", b.Total)
	}
	return r.replaceKnown(out.String()), known
}

// nextLine splits at any of the line ends that server-sent events have.
func nextLine(raw []byte) (line, rest []byte) {
	i := bytes.IndexAny(raw, "\r\n")
	if i < 0 {
		return raw, nil
	}
	end := i + 1
	if raw[i] == '\r' && end < len(raw) && raw[end] == '\n' {
		end++
	}
	return raw[:i], raw[end:]
}

// eventName is the name of an event: words, and nothing that could be a secret.
var eventName = regexp.MustCompile(`^[a-z_.-]{1,64}$`)

// line redacts one line, and reports whether it is one of server-sent events or of JSON.
func (r Redactor) line(line []byte) (string, bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return "", false
	}
	if clean, ok := r.redactJSON(line); ok {
		return clean, true
	}
	if field, value, found := strings.Cut(string(line), ":"); found {
		if clean, ok := r.field(field, strings.TrimSpace(value)); ok {
			return field + ": " + clean, true
		}
	}
	return leftOut(len(line), "that are not JSON"), false
}

// field redacts the value of a field of server-sent events; false, if there is no such field.
func (r Redactor) field(name, value string) (string, bool) {
	understood := false
	switch name {
	case "data":
		return r.data(value), true
	case "event":
		understood = eventName.MatchString(value)
	case "retry":
		understood = countOrTime.MatchString(value)
	case "", "id":
	default:
		return "", false
	}
	if !understood {
		value = leftOut(len(value), "that are not data")
	}
	return value, true
}

func (r Redactor) data(value string) string {
	if value == "[DONE]" || value == "" {
		return value
	}
	if clean, ok := r.redactJSON([]byte(value)); ok {
		return clean
	}
	return leftOut(len(value), "that are not JSON")
}
