// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

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
	// MaxFileBytes is how large a file of a skill may be that is read: 512 KiB.
	MaxFileBytes = 512 << 10
	// maxName is how many characters a name has, as the public format bounds it.
	maxName = 64
	// maxNamed is how many skills an error names.
	maxNamed = 50
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
	// Description is what the skill says that it is for, as it stands there.
	Description string
	// Dir is the folder in the workspace, relative to its directory; empty for a ConfigMap.
	Dir string
	// Main is the name of the file with its instructions.
	Main string
	// Files lists paths of files, all of which CheckPath takes, in their order; more: there are more than these.
	Files func(ctx context.Context) (paths []string, more bool, err error)
	// File is the content of a file whose path CheckPath has taken. Its errors are ErrNoFile, ErrTooLarge, or are told to
	// the model in their own words.
	File func(ctx context.Context, path string) ([]byte, error)
}

// FullName tells a skill from one of the same name that is from elsewhere. It is how all skills are shown: so a skill
// that comes to be in a workspace changes neither what others are called nor the prompt that names them.
func (s *Skill) FullName() string { return string(s.Source) + "/" + s.Name }

// Names gives names to the skills of one source. The zero value has given none.
type Names struct{ taken map[string]bool }

// Next is the name of the next skill: what its SKILL.md says; where that says none, or an earlier skill has it, the
// name of the ConfigMap or folder that it is in; where that is taken, too, the same with a number. A name is one
// printable line of at most 64 characters without a slash, so that none looks like one of another source.
func (n *Names) Next(said, home string) string {
	name := nameOf(said)
	if name == "" || n.taken[name] {
		name = nameOf(home)
	}
	base := cmp.Or(name, "skill")
	for i := 2; name == "" || n.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", clip.Runes(base, maxName-8), i)
	}
	if n.taken == nil {
		n.taken = map[string]bool{}
	}
	n.taken[name] = true
	return name
}

func nameOf(text string) string {
	name := strings.TrimSpace(clip.Runes(printable.Line(text), maxName))
	if strings.Contains(name, "/") {
		return ""
	}
	return name
}

// Find is the skill that a model names: by its full name, or by its name where no other source has a skill of that. The
// error tells the model which there are.
func Find(all []Skill, name string) (*Skill, error) {
	var found []*Skill
	for i := range all {
		if name == all[i].FullName() || name == all[i].Name {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no skill %.200q; the skills are: %s", name, Listed(all))
	case 1:
		return found[0], nil
	}
	var names []string
	for _, s := range found {
		names = append(names, s.FullName())
	}
	return nil, fmt.Errorf("there is more than one skill %q: name %s", name, strings.Join(names, " or "))
}

// Listed names skills, at most 50 of them.
func Listed(all []Skill) string {
	if len(all) == 0 {
		return "none"
	}
	var names []string
	for i := range all[:min(len(all), maxNamed)] {
		names = append(names, all[i].FullName())
	}
	if more := len(all) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
