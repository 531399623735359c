// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"parley.dev/parley/api/stream"
)

// hint knows how a person types a verb of this plug-in for the chat that is shown.
type hint struct {
	chat    string
	command func(words ...string) string
}

func (s *session) hint(chat string) hint { return hint{chat: chat, command: s.options.command} }

// lines say for each call that waits what to type. All results of a client go into one command.
func (h hint) lines(a *stream.RequiresAction) (lines []string) {
	var results []string
	for i := range a.ToolCalls {
		call := &a.ToolCalls[i]
		switch waitsFor(call) {
		case forClient:
			lines = append(lines, fmt.Sprintf("  %s (%s) needs a result", call.ID, call.Name))
			results = append(results, call.ID+"=JSON")
		case forInput:
			lines = append(lines, fmt.Sprintf("  %s (%s) asks for input:", call.ID, call.Name))
			lines = append(lines, indented(detailOf(call))...)
			lines = append(lines, "    "+h.command("answer", h.chat, call.ID+"=JSON", "--digest",
				shortDigest(call.Digest)), "    "+h.command("deny", h.chat, call.ID))
		case forApproval:
			lines = append(lines, fmt.Sprintf("  %s (%s) needs approval", call.ID, call.Name))
			lines = append(lines, indented(detailOf(call))...)
			lines = append(lines, "    "+h.command("approve", h.chat, call.ID, "--digest", shortDigest(call.Digest)),
				"    "+h.command("deny", h.chat, call.ID))
		}
	}
	if len(results) > 0 {
		lines = append(lines, "    "+h.command(append([]string{"answer", h.chat}, results...)...))
	}
	return lines
}

// indented are lines that others say, within those of the plug-in.
func indented(said []string) (lines []string) {
	for _, line := range said {
		lines = append(lines, "      | "+line)
	}
	return lines
}
