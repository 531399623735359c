// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley.dev/parley/internal/workspace/protocol"
)

// listed is how many occurrences a refusal names, and counted how many it counts.
const listed, counted = 10, 100

// applyEdit makes one edit in a text, and returns the number of replaced occurrences. exists reports whether there was a
// file with the text.
func applyEdit(e protocol.Edit, content string, exists bool) (string, int, error) {
	if strings.ContainsRune(e.NewText, 0) {
		return "", 0, refuse(protocol.BadRequest, "The new text for %q holds a zero byte, which no text has.", e.Path)
	}
	if e.OldText == "" {
		return fill(e, content)
	}
	if !exists && content == "" {
		return "", 0, refuse(protocol.NotFound, "There is no file %q. To make it, leave the text to replace empty.", e.Path)
	}
	oldText, newText := adapt(e, content)
	if oldText == newText {
		return "", 0, refuse(protocol.BadRequest, "The new text for %q is the same as the one to replace.", e.Path)
	}
	first := strings.Index(content, oldText)
	if first < 0 {
		return "", 0, refuse(protocol.NoMatch, "The text to replace does not occur in %q. %s", e.Path,
			passage(nearest(content, oldText)))
	}
	count := 1
	if e.ReplaceAll {
		count = strings.Count(content, oldText)
	} else if strings.Contains(content[first+1:], oldText) {
		return "", 0, notUnique(e.Path, content, oldText)
	}
	if length := int64(len(content)) + int64(count)*int64(len(newText)-len(oldText)); length > protocol.MaxFileBytes {
		return "", 0, refuse(protocol.TooLarge, "%q would have %s, more than %s.", e.Path, size(length),
			size(protocol.MaxFileBytes))
	}
	return strings.Replace(content, oldText, newText, count), count, nil
}

// fill is the edit of a file that is empty or missing.
func fill(e protocol.Edit, content string) (string, int, error) {
	if content != "" {
		return "", 0, refuse(protocol.BadRequest, "%q is not empty: the text to replace is missing.", e.Path)
	}
	return e.NewText, 0, nil
}

// adapt gives the texts of an edit the line endings of a Windows file: models see no carriage returns. An edit with a
// carriage return is exact.
func adapt(e protocol.Edit, content string) (oldText, newText string) {
	if strings.Contains(e.OldText, "\r") || !endsInCRLF(content) {
		return e.OldText, e.NewText
	}
	return toCRLF(e.OldText), toCRLF(e.NewText)
}

// endsInCRLF reports whether all lines of a text end in CRLF.
func endsInCRLF(text string) bool {
	lines := strings.Count(text, "\n")
	return lines > 0 && lines == strings.Count(text, "\r\n")
}

func toCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// notUnique lists where a text occurs.
func notUnique(path, content, text string) error {
	var lines []string
	number, from, all := 1, 0, 0
	for all <= counted {
		at := strings.Index(content[from:], text)
		if at < 0 {
			break
		}
		if all++; len(lines) < listed {
			number += strings.Count(content[from:from+at], "\n")
			lines = append(lines, strconv.Itoa(number))
			if content[from+at] == '\n' {
				number++
			}
		}
		from += at + 1
	}
	times := strconv.Itoa(all)
	if all > counted {
		times = fmt.Sprintf("more than %d", counted)
	}
	where := strings.Join(slices.Compact(lines), ", ")
	if all > len(lines) {
		where += ", ..."
	}
	return refuse(protocol.NotUnique, "The text to replace occurs %s times in %q, at the lines %s. "+
		"Take more of the text around the one that you mean, or ask for all to be replaced.", times, path, where)
}
