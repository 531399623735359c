// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

// replacement replaces NUL and invalid UTF-8: providers refuse it, or fail to store it.
const replacement = "\uFFFD"

// clean replaces the characters that providers refuse.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, replacement), "\x00", replacement)
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// object is the arguments of a call as a JSON object; an empty one for invalid arguments, of which the result says what
// is wrong. Some providers refuse anything else, and some drop the call but keep its result.
func object(input string) string {
	input = clean(input)
	var members map[string]any
	if json.Unmarshal([]byte(input), &members) != nil || members == nil {
		return "{}"
	}
	return escapedNUL.Replace(input)
}

// escapedNUL replaces NUL in JSON. An escaped backslash is matched first, so that what follows it is no escape.
var escapedNUL = strings.NewReplacer(`\\`, `\\`, `\u0000`, replacement)

// ValidName is the text in the characters that every provider takes in ids and names of tools, at most limit of them.
func ValidName(text string, limit int) string {
	valid := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, text)
	return valid[:min(len(valid), limit)]
}

// subChat is the instruction for the model of a chat with a parent.
const subChat = `Another agent gave you this task and reads your last message as the result; no person follows along.
Do what was asked, without asking back. End with a complete and self-contained answer, and say what you could not do.`

// cut marks cut instructions.
const cut = "\n\n[These instructions are longer than 64 KiB; the rest was cut off.]"

// system is the text of the system message.
func (in Input) system() string {
	blocks := []string{in.SystemPrompt}
	for _, text := range in.Instructions {
		if kept := clip.Bytes(text, v1beta1.MaxInstructionsBytes); kept != text {
			text = kept + cut
		}
		blocks = append(blocks, text)
	}
	blocks = append(blocks, in.Skills)
	if in.SubChat {
		blocks = append(blocks, subChat)
	}
	var texts []string
	for _, block := range slices.Concat(blocks, in.Extra) {
		if text := clean(block); !blank(text) {
			texts = append(texts, strings.Trim(text, "\n"))
		}
	}
	return strings.Join(texts, "\n\n")
}
