// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skill parses and indexes skills: instructions and files for tasks of a kind, in a ConfigMap or in a folder of
// a workspace. Their public format is a SKILL.md that begins with a front matter in YAML, with name and description.
// Other fields are ignored. Skills are not trusted: their texts are single lines of an index, and their paths stay
// within the skill. The package is pure.
package skill

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// MainFile is the file of a skill with its instructions.
const MainFile = "SKILL.md"

// maxHead is the maximum size of a front matter; a longer one is body. The public format has at most 1024 characters of
// description.
const maxHead = 16 << 10

// Document is a SKILL.md.
type Document struct {
	// Name and Description are from the front matter, unchanged; empty if missing.
	Name, Description string
	// Body is the text after the front matter, or the whole text. Invalid UTF-8 is U+FFFD in it.
	Body string
	// BodyLine is the line of the file that Body begins with, from 1 on.
	BodyLine int
}

// Parse parses a SKILL.md. It never fails: without a complete front matter, all is Body.
func Parse(content []byte) Document {
	text := strings.TrimPrefix(strings.ToValidUTF8(string(content), "\ufffd"), "\ufeff")
	head, body, lines, ok := cutHead(text)
	if !ok {
		return Document{Body: text, BodyLine: 1}
	}
	d := Document{Body: body, BodyLine: lines + 1}
	var fields map[string]any
	if yaml.Unmarshal([]byte(head), &fields) != nil { // Often, because a description has a colon.
		d.Name, d.Description = fieldIn(head, "name"), fieldIn(head, "description")
		return d
	}
	d.Name, _ = fields["name"].(string)
	d.Description, _ = fields["description"].(string)
	return d
}

// cutHead cuts the front matter, between two lines of ---, off a text. lines includes those two.
func cutHead(text string) (head, body string, lines int, ok bool) {
	at := 0
	for line := range strings.Lines(text) {
		at += len(line)
		lines++
		switch fence := strings.TrimRight(line, " \t\r\n") == "---"; {
		case lines == 1 && !fence || at > maxHead:
			return "", "", 0, false
		case lines == 1:
			text = text[at:]
			at = 0
		case fence:
			return text[:at-len(line)], text[at:], lines, true
		}
	}
	return "", "", 0, false
}

// notPlain are the characters that begin other values of YAML than a text on one line.
const notPlain = "[{&*!|>%@`"

// fieldIn is the text after the key, on the first line that begins with it.
func fieldIn(head, key string) string {
	for line := range strings.Lines(head) {
		value, ok := strings.CutPrefix(line, key+":")
		if value = strings.TrimSpace(value); ok && value != "" && strings.IndexByte(notPlain, value[0]) < 0 {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}
