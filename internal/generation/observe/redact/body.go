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

// Body is the beginning of an HTTP body, and how many bytes of it were read in total.
type Body struct {
	Kept  []byte
	Total int64
}

// whole reports whether nothing is missing.
func (b Body) whole() bool { return b.Total <= int64(len(b.Kept)) }

// Body returns a body as it may be recorded: JSON, or server-sent events and lines of JSON up to the last whole line.
// Of anything else, a remark says how long it was. The result has at most limit bytes and a remark.
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

// cut cuts a redacted text.
func cut(clean string, limit int) string {
	if len(clean) <= limit {
		return clean
	}
	return clip.Bytes(clean, limit) + fmt.Sprintf("\n[cut: %d bytes in all]", len(clean))
}

// lines redacts server-sent events or lines of JSON; known is false if the body is neither.
func (r Redactor) lines(b Body) (clean string, known bool) {
	kept := b.Kept
	if !b.whole() { // The last line is not whole.
		kept = kept[:bytes.LastIndexAny(kept, "\r\n")+1]
	}
	var out strings.Builder
	for line := range strings.Lines(lineEnds.Replace(string(kept))) {
		clean, isKnown := r.line(line)
		known = known || isKnown
		out.WriteString(clean + "\n")
	}
	if !b.whole() {
		fmt.Fprintf(&out, "[cut: %d bytes in all]", b.Total)
	}
	return r.replaceKnown(out.String()), known
}

// lineEnds makes one of the line ends that server-sent events have.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// eventName is the name of an event.
var eventName = regexp.MustCompile(`^[a-z_.-]{1,64}$`)

// line redacts one line, and reports whether it is one of server-sent events or of JSON.
func (r Redactor) line(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if line == "" {
		return "", false
	}
	if clean, ok := r.redactJSON([]byte(line)); ok {
		return clean, true
	}
	if field, value, found := strings.Cut(line, ":"); found {
		if clean, ok := r.field(field, strings.TrimSpace(value)); ok {
			return field + ": " + clean, true
		}
	}
	return leftOut(len(line), "that are not JSON"), false
}

// field redacts the value of a field of server-sent events; false, if there is no such field.
func (r Redactor) field(name, value string) (string, bool) {
	isHarmless := false
	switch name {
	case "data":
		return r.data(value), true
	case "event":
		isHarmless = eventName.MatchString(value)
	case "retry":
		isHarmless = countOrTime.MatchString(value)
	case "", "id":
	default:
		return "", false
	}
	if !isHarmless {
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
