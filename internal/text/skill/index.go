// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"fmt"
	"strings"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

const (
	// MaxIndexed is how many skills an index names.
	MaxIndexed = 50
	// maxDescription is how many characters an index has of a description.
	maxDescription = 500
	// maxIndex is how many bytes an index has: 64 KiB, as instructions have.
	maxIndex = 64 << 10
	// moreRoom is what the line takes that says what is left out.
	moreRoom = 128
)

// How indexes begin.
const (
	// OfChat begins the index of the skills that Chat.spec.skillsFrom names.
	OfChat = "Skills of this chat: instructions and files for tasks of a kind. "
	// OfWorkspace begins the index of the skills in the workspace.
	OfWorkspace = "Skills of this workspace: folders with instructions and files for tasks of a kind. "

	howTo = "Before such a task, read the skill with read_skill, and follow it; read_skill_file reads a file of it.\n\n"
)

// Index names skills, in their order, one line each: what it is called, where it is, and what it says that it is for.
// more: there are others besides. Without skills it is empty.
func Index(begin string, all []Skill, more bool) string {
	if len(all) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(begin + howTo)
	for i := range all {
		line := lineOf(&all[i])
		if i == MaxIndexed || text.Len()+len(line) > maxIndex-moreRoom {
			more = true
			break
		}
		text.WriteString(line)
	}
	if more {
		text.WriteString("[There are more skills than these; this list names no others.]\n")
	}
	return text.String()
}

func lineOf(s *Skill) string {
	line := "- " + s.FullName()
	if s.Dir != "" {
		line += fmt.Sprintf(" (%s)", printable.Line(s.Dir+"/"+s.Main))
	}
	if about := clip.Ellipsis(printable.Line(s.Description), maxDescription); about != "" {
		line += ": " + about
	}
	return line + "\n"
}
