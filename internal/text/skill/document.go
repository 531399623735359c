// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skill knows skills: instructions and files for tasks of a kind, in a ConfigMap or in a folder of a workspace.
// What it reads is the public format: a SKILL.md that begins with a front matter in YAML, with name and description;
// what else stands there, such as license, allowed-tools and metadata, means nothing here. All of it was written by
// others, so no text of a skill is more than one line of an index, and no name or path leads anywhere. The package is
// pure.
package skill

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// MainFile is the file of a skill with its instructions.
const MainFile = "SKILL.md"

// maxHead is how many bytes a front matter may have; a longer one is none. 16 KiB: the public format has at most 1024
// characters of description.
const maxHead = 16 << 10

// Document is a SKILL.md.
type Document struct {
	// Name and Description are what the front matter says, as they stand there; empty if it does not say it.
	Name, Description string
	// Body is the text behind the front matter; all of it where there is none. What is no UTF-8 is U+FFFD in it.
	Body string
	// BodyLine is the line of the file that Body begins with, from 1 on.
	BodyLine int
}

// Parse reads a SKILL.md. It takes whatever is there: where there is no front matter that ends, all is Body.
func Parse(content []byte) Document {
	text := strings.TrimPrefix(strings.ToValidUTF8(string(content), "\ufffd"), "\ufeff")
	head, body, lines, ok := cutHead(text)
	if !ok {
		return Document{Body: text, BodyLine: 1}
	}
	d := Document{Body: body, BodyLine: lines + 1}
	d.Name, d.Description = said(head)
	return d
}

// cutHead cuts the front matter, between two lines of ---, off a text, and counts the lines that it takes with them.
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

// said is what a front matter says. Many in the wild are no YAML, because a description has a colon in it: of those the
// lines count.
func said(head string) (name, description string) {
	var fields map[string]any
	if yaml.Unmarshal([]byte(head), &fields) != nil {
		return fieldIn(head, "name"), fieldIn(head, "description")
	}
	name, _ = fields["name"].(string)
	description, _ = fields["description"].(string)
	return name, description
}

// notPlain are the characters by which YAML begins what is more than a text on its line.
const notPlain = "[{&*!|>%@`"

// fieldIn is the text behind the key, on the first line that begins with it.
func fieldIn(head, key string) string {
	for line := range strings.Lines(head) {
		value, ok := strings.CutPrefix(line, key+":")
		if value = strings.TrimSpace(value); ok && value != "" && strings.IndexByte(notPlain, value[0]) < 0 {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}
