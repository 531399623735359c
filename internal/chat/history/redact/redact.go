// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact removes a text, such as a pasted password, from the objects of a chat, in the cluster or in an
// archive. It is pure.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// Replacement stands where the text was. A shorter text is replaced by asterisks, so that nothing gets longer than
	// its field allows.
	Replacement = "[redacted]"
	// minBytes is the shortest text that is removed: a shorter one is a part of many words.
	minBytes = 6
	// minClipped is how much of the text must stand at the end of a clipped value to be removed there.
	minClipped = 4
	ellipsis   = "…"
)

// Text is what is to be removed.
type Text struct {
	// forms are the text itself, and as JSON, URLs and Secrets write it, the longest first.
	forms []string
	// unescaped is the text without escapes, to compare with values without theirs.
	unescaped string
}

// New returns the text in its forms. A text of less than 6 bytes is an error.
func New(text string) (*Text, error) {
	if len(strings.TrimSpace(text)) < minBytes {
		return nil, fmt.Errorf("the text to remove has less than %d bytes: it would be removed from other words, too",
			minBytes)
	}
	// A title has its words in one line.
	t := &Text{forms: []string{text, url.QueryEscape(text), url.PathEscape(text), strings.Join(strings.Fields(text), " ")}}
	for _, html := range []bool{false, true} {
		escaped := inJSON(text, html)
		t.forms = append(t.forms, escaped, inJSON(escaped, html)) // Arguments of calls are JSON in JSON.
	}
	for _, value := range []string{text, text + "\n"} {
		t.forms = append(t.forms, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="),
			base64.RawURLEncoding.EncodeToString([]byte(value)))
	}
	slices.SortFunc(t.forms, func(a, b string) int { return len(b) - len(a) })
	t.forms = slices.Compact(t.forms)
	t.unescaped, _ = unescape(text)
	return t, nil
}

// inJSON is the text as a string of JSON has it, without the quotes.
func inJSON(text string, html bool) string {
	var escaped bytes.Buffer
	encoder := json.NewEncoder(&escaped)
	encoder.SetEscapeHTML(html)
	_ = encoder.Encode(text) // A string always encodes.
	return escaped.String()[1 : escaped.Len()-2]
}

// Replace returns the value without the text.
func (t *Text) Replace(value string) string {
	value = t.replaceEscaped(value)
	for _, form := range t.forms {
		value = strings.ReplaceAll(value, form, mask(utf8.RuneCountInString(form)))
	}
	clipped, ok := strings.CutSuffix(value, ellipsis)
	if !ok {
		return value
	}
	for _, form := range t.forms {
		for n := min(len(form), len(clipped)); n >= minClipped; n-- {
			if strings.HasSuffix(clipped, form[:n]) {
				return clipped[:len(clipped)-n] + strings.Repeat("*", utf8.RuneCountInString(form[:n])) + ellipsis
			}
		}
	}
	return value
}

func mask(n int) string {
	if n < len(Replacement) {
		return strings.Repeat("*", n)
	}
	return Replacement
}

// Fields removes the text from all values of an object below the path, and returns the paths of what changed. It leaves
// the fields that identify something; Find reports those.
func (t *Text) Fields(path string, fields map[string]any) (changed []string) {
	for _, key := range sortedKeys(fields) {
		at := path + "." + key
		if metadata, ok := fields[key].(string); ok && key == providerMetadata && t.In(metadata) {
			delete(fields, key) // A provider refuses a part of it.
			changed = append(changed, at)
			continue
		}
		value, more := t.value(at, key, fields[key])
		fields[key], changed = value, append(changed, more...)
	}
	if len(changed) > 0 && fields["type"] == "Reasoning" {
		delete(fields, providerMetadata) // It has a signature of the text as it was.
	}
	return changed
}

const providerMetadata = "providerMetadata"

func (t *Text) value(path, key string, value any) (any, []string) {
	switch v := value.(type) {
	case string:
		if identifies(path) {
			return v, nil
		}
		left := t.Replace(v)
		if key == "data" && t.In(decoded(v)) {
			left = base64.StdEncoding.EncodeToString([]byte(t.Replace(decoded(v))))
		}
		if left == v {
			return v, nil
		}
		return left, []string{path}
	case map[string]any:
		return v, t.Fields(path, v)
	case []any:
		var changed []string
		for i := range v {
			item, more := t.value(path, key, v[i])
			v[i], changed = item, append(changed, more...)
		}
		return v, slices.Compact(changed)
	}
	return value, nil
}

// decoded is the content of a file; empty if it is not one.
func decoded(data string) string {
	raw, _ := base64.StdEncoding.DecodeString(data) // Other fields of that name have no base64.
	return string(raw)
}

// identities are fields that name objects, calls or contents, with all below them. A redaction of one would break what
// refers to it.
var identities = []string{
	"spec.chatRef", "spec.parentRef", "spec.modelConfigRef", "spec.parent", "spec.follows", "spec.generation.chatUID",
	"spec.generation.pod", "spec.parts.toolCall.id", "spec.parts.toolCall.name", "spec.parts.toolResult.id",
	"spec.parts.toolResult.name", "spec.chatClassName", "status.root", "status.history", "status.queue",
	"status.turn.message", "status.turn.parent", "status.internal.tail", "status.internal.turn.contentHash",
}

func identifies(path string) bool {
	return slices.ContainsFunc(identities, func(field string) bool {
		return path == field || strings.HasPrefix(path, field+".")
	})
}

// In reports whether the value has the text, or is clipped within it.
func (t *Text) In(value string) bool { return t.Replace(value) != value }

// Find returns the paths of all values and keys of an object that have the text.
func (t *Text) Find(path string, value any) (found []string) {
	switch v := value.(type) {
	case string:
		if t.In(v) || strings.HasSuffix(path, ".data") && t.In(decoded(v)) {
			found = append(found, path)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			at := strings.TrimPrefix(path+"."+key, ".")
			if t.In(key) {
				found = append(found, path+".<key>")
			}
			found = append(found, t.Find(at, v[key])...)
		}
	case []any:
		for _, item := range v {
			found = append(found, t.Find(path, item)...)
		}
	}
	return slices.Compact(found)
}

func sortedKeys(fields map[string]any) []string {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
