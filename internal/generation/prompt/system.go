// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
)

// subChat is what the model of a chat with a parent is told.
const subChat = `Another agent gave you this task and reads your last message as the result; no person follows along.
Do what was asked, without asking back. End with a complete and self-contained answer, and say what you could not do.`

// cut marks instructions that were too long.
const cut = "\n\n[These instructions are longer than 64 KiB; the rest was cut off.]"

// system is the text of the system message, empty if there is nothing to say.
func (in Input) system() string {
	blocks := []string{in.SystemPrompt}
	for _, text := range in.Instructions {
		blocks = append(blocks, cutInstructions(text))
	}
	blocks = append(blocks, in.Skills)
	if in.SubChat {
		blocks = append(blocks, subChat)
	}
	var said []string
	for _, block := range slices.Concat(blocks, in.Extra) {
		if text := clean(block); !blank(text) {
			said = append(said, strings.Trim(text, "\n"))
		}
	}
	return strings.Join(said, "\n\n")
}

func cutInstructions(text string) string {
	if kept := clip.Bytes(text, v1alpha1.MaxInstructionsBytes); kept != text {
		return kept + cut
	}
	return text
}
