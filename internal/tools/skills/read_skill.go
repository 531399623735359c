// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// maxDescription is how many characters of a description are shown, as many as the public format allows.
const maxDescription = 1024

// readSkill reads the instructions of a skill.
type readSkill struct{ *common }

type readSkillResult struct {
	Name        string   `json:"name" doc:"The skill, with its source: configmap/NAME or workspace/NAME."`
	Description string   `json:"description,omitempty" doc:"What it says that it is for."`
	Body        string   `json:"body" doc:"Its instructions: SKILL.md or skill.md, without the front matter."`
	Files       []string `json:"files" doc:"Its files, as read_skill_file takes them."`
	Dir         string   `json:"dir,omitempty" doc:"Its folder in the workspace, if it is there."`
	Note        string   `json:"note,omitempty" doc:"What else there is to know."`
}

func (t readSkill) Definition() tools.Definition {
	return tools.Definition{
		Name: "read_skill",
		Description: "Reads a skill: instructions for tasks of a kind, and which files it has. Call it before such a task, " +
			"with a name from a list of skills, and follow what it says. read_skill_file reads its files.",
		InputSchema: arguments.Object(map[string]any{"name": nameArgument()}, "name"),
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: t.suits, Repeatable: true,
			MayNeedWorkspace: t.mayNeedWorkspace},
		Reference: tools.Reference{
			Offered: offered, Result: readSkillResult{},
			Errors: []string{
				"There is no such skill: the error names those that there are.",
				"A ConfigMap and the workspace have a skill of that name each: the error names both. While the workspace does " +
					"not run, NAME alone is that of the ConfigMap.",
				"The skill is in the workspace, and that cannot be used.",
			},
			Limits: []string{
				fmt.Sprintf("A third of the model's context, at least 16 KiB and at most %d KiB, of whole lines. The rest of "+
					"SKILL.md is left out, with a marker that says how to read on.", tools.MaxResultBytes>>10),
				fmt.Sprintf("A SKILL.md has at most %d KiB. %d files are listed, none that is hidden.", skill.MaxFileBytes>>10,
					maxFiles),
				"A skill of a ConfigMap is read without the workspace. workspace/NAME starts it, and so does NAME alone in a " +
					"chat without `spec.skillsFrom`.",
			},
		},
	}
}

// Run reads the skill.
func (t readSkill) Run(ctx context.Context, call tools.Call) (string, error) {
	var given struct {
		Name string `json:"name"`
	}
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return "", err
	}
	found, err := t.find(ctx, call.Chat, given.Name)
	if err != nil {
		return "", err
	}
	content, err := found.File(ctx, found.Main)
	if err != nil {
		return "", fileProblem(ctx, found, found.Main, err)
	}
	files, more, err := listed(ctx, found)
	if err != nil {
		return "", fileProblem(ctx, found, found.Main, err)
	}
	about := skill.Parse(content)
	result := readSkillResult{
		Name: found.FullName(), Files: slices.Concat([]string{}, files), Dir: found.Dir,
		Description: clip.Ellipsis(printable.Line(about.Description), maxDescription),
	}
	if more {
		result.Note = "The skill has more files than these."
	}
	lines := slices.Collect(strings.Lines(about.Body))
	return tools.FitLines(call.Chat, len(lines), func(most, room int) any {
		shown := result
		shown.Body = bodyOf(about, found.Main, lines, most, room)
		return shown
	})
}

// bodyOf is the body with so many of its lines, of which none has more bytes than there is room for.
func bodyOf(about skill.Document, main string, lines []string, most, room int) string {
	body := joined(lines[:most], room)
	if most < len(lines) {
		body += fmt.Sprintf("[... %d lines left out: read_skill_file reads %s on from offset %d ...]\n",
			len(lines)-most, main, about.BodyLine+most)
	}
	return body
}
