// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// Source is where a skill is from.
type Source string

const (
	// FromConfigMap is a ConfigMap that Chat.spec.skillsFrom names.
	FromConfigMap Source = "configmap"
	// FromWorkspace is a folder of the workspace.
	FromWorkspace Source = "workspace"
)

const (
	// MaxFileBytes is the maximum size of a file that is read.
	MaxFileBytes = 512 << 10
	// MaxIndexed is how many skills an index names.
	MaxIndexed = 50
	// maxName is in characters, as in the public format.
	maxName = 64
	// maxPath is in bytes.
	maxPath = 1024
	// maxNamed is how many skills an error names.
	maxNamed = 50
	// maxDescription is how many characters of a description an index has.
	maxDescription = 500
	// maxIndex is the maximum size of an index, as of instructions.
	maxIndex = 64 << 10
	// moreRoom is reserved for the line about omitted skills.
	moreRoom = 128
)

// The first sentences of an index.
const (
	// OfChat begins the index of the skills that Chat.spec.skillsFrom names.
	OfChat = "Skills of this chat: instructions and files for tasks of a kind. "
	// OfWorkspace begins the index of the skills in the workspace.
	OfWorkspace = "Skills of this workspace: folders with instructions and files for tasks of a kind. "

	howTo = "Before such a task, read the skill with read_skill, and follow it; read_skill_file reads a file of it.\n\n"
)

var (
	// ErrNoFile means that the skill has no such file.
	ErrNoFile = errors.New("there is no such file")
	// ErrTooLarge means that a file has more than MaxFileBytes.
	ErrTooLarge = errors.New("the file has more than 512 KiB")
)

// Skill is one that a model can read.
type Skill struct {
	Source Source
	// Name is unique among those of the source: see Names.
	Name string
	// Description of its purpose, as in the SKILL.md.
	Description string
	// Dir is the folder in the workspace, relative to its directory; empty for a ConfigMap.
	Dir string
	// Main is the name of the file with its instructions.
	Main string
	// Files lists the sorted paths of files; more: there are others. CheckPath accepts all of them.
	Files func(ctx context.Context) (paths []string, more bool, err error)
	// File reads a file whose path CheckPath accepts. Its errors are ErrNoFile, ErrTooLarge, or texts for the model.
	File func(ctx context.Context, path string) ([]byte, error)
}

// FullName is the name with the source. Prompts have it, so that a new skill in a workspace changes no name of another.
func (s *Skill) FullName() string { return string(s.Source) + "/" + s.Name }

// Names assigns unique names to the skills of one source. The zero value is empty.
type Names struct{ used map[string]bool }

// Next is the name of the next skill: the one in its SKILL.md; if that is missing or in use, home, the name of its
// ConfigMap or folder; if that is in use, too, the same with a number. A name is one printable line of at most 64
// characters without a slash, so that it cannot look like one of another source.
func (n *Names) Next(own, home string) string {
	name := validName(own)
	if name == "" || n.used[name] {
		name = validName(home)
	}
	base := cmp.Or(name, "skill")
	for i := 2; name == "" || n.used[name]; i++ {
		name = fmt.Sprintf("%s-%d", clip.Runes(base, maxName-8), i)
	}
	if n.used == nil {
		n.used = map[string]bool{}
	}
	n.used[name] = true
	return name
}

func validName(text string) string {
	name := strings.TrimSpace(clip.Runes(printable.Line(text), maxName))
	if strings.Contains(name, "/") {
		return ""
	}
	return name
}

// Find finds a skill by its full name, or by its name if that is unique. The error tells the model which there are.
func Find(all []Skill, name string) (found *Skill, err error) {
	var names []string
	for i := range all {
		if name == all[i].FullName() || name == all[i].Name {
			found = &all[i]
			names = append(names, found.FullName())
		}
	}
	switch len(names) {
	case 0:
		return nil, fmt.Errorf("there is no skill %.200q; the skills are: %s", name, Listed(all))
	case 1:
		return found, nil
	}
	return nil, fmt.Errorf("there is more than one skill %q: name %s", name, strings.Join(names, " or "))
}

// Listed names skills, at most 50 of them.
func Listed(all []Skill) string {
	var names []string
	for i := range all[:min(len(all), maxNamed)] {
		names = append(names, all[i].FullName())
	}
	if more := len(all) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// Index lists skills in their order, one line each, with name, path and description. more: there are others. Without
// skills it is empty.
func Index(begin string, all []Skill, more bool) string {
	if len(all) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(begin + howTo)
	for i := range all {
		line := indexLine(&all[i])
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

func indexLine(s *Skill) string {
	line := "- " + s.FullName()
	if s.Dir != "" {
		line += fmt.Sprintf(" (%s)", printable.Line(s.Dir+"/"+s.Main))
	}
	if about := clip.Ellipsis(printable.Line(s.Description), maxDescription); about != "" {
		line += ": " + about
	}
	return line + "\n"
}

// CheckPath returns the path of a file in a skill, without a leading ./. It refuses paths that are absolute, leave the
// skill, or name hidden files.
func CheckPath(file string) (string, error) {
	relative := strings.TrimPrefix(file, "./")
	if relative == "" || len(relative) > maxPath {
		return "", fmt.Errorf("the path is empty, or longer than %d bytes: name a file of the skill", maxPath)
	}
	for segment := range strings.SplitSeq(relative, "/") {
		if segment == "" || segment[0] == '.' || strings.ContainsFunc(segment, isForbidden) {
			return "", fmt.Errorf("the path %.200q is none of a file of the skill: it must be relative, such as "+
				"scripts/fill.py, without .. and without names that begin with a dot", file)
		}
	}
	return relative, nil
}

// isForbidden reports whether no name of a file may have the character, such as a backslash or a control character.
func isForbidden(r rune) bool {
	return r == '\\' || unicode.IsControl(r) || r == unicode.ReplacementChar
}
