// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

const (
	// maxDescription and maxPath are characters. The public format has the same limit of a description.
	maxDescription, maxPath = 1024, 1024
	// defaultLines and maxLines are how many lines a call reads by default and at most.
	defaultLines, maxLines = 2000, 10_000
	// minLine is how many bytes of a line are shown at least.
	minLine = 256
)

type readSkillArguments struct {
	Name string `json:"name"`
}

type readSkillResult struct {
	Name        string   `json:"name" doc:"The skill, with its source: configmap/NAME or workspace/NAME."`
	Description string   `json:"description,omitempty" doc:"What it says that it is for."`
	Body        string   `json:"body" doc:"Its instructions: SKILL.md or skill.md, without the front matter."`
	Files       []string `json:"files" doc:"Its files, as read_skill_file takes them."`
	Dir         string   `json:"dir,omitempty" doc:"Its folder in the workspace, if it is there."`
	Note        string   `json:"note,omitempty" doc:"What else there is to know."`
}

func (o Options) readSkill() tools.Tool {
	return tools.New(tools.Definition{
		Name: "read_skill",
		Description: "Reads a skill: instructions for tasks of a kind, and which files it has. Call it before such a task, " +
			"with a name from a list of skills, and follow what it says. read_skill_file reads its files.",
		InputSchema: arguments.Object(map[string]any{"name": nameArgument}, "name"),
		Traits:      o.traits(),
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
	}, o.runReadSkill)
}

func (o Options) runReadSkill(ctx context.Context, call tools.Call, args readSkillArguments) (string, error) {
	found, err := o.find(ctx, call.Chat, args.Name)
	if err != nil {
		return "", err
	}
	var files []string
	more := false
	content, err := found.File(ctx, found.Main)
	if err == nil {
		files, more, err = listed(ctx, found)
	}
	if err != nil {
		return "", fileProblem(ctx, found, found.Main, err)
	}
	document := skill.Parse(content)
	result := readSkillResult{
		Name: found.FullName(), Files: slices.Concat([]string{}, files), Dir: found.Dir,
		Description: clip.Ellipsis(printable.Line(document.Description), maxDescription),
	}
	if more {
		result.Note = "The skill has more files than these."
	}
	lines := slices.Collect(strings.Lines(document.Body))
	return tools.FitLines(call.Chat, len(lines), func(most, maxLine int) any {
		result.Body = joinLines(lines[:most], maxLine)
		if most < len(lines) {
			result.Body += fmt.Sprintf("[... %d lines left out: read_skill_file reads %s on from offset %d ...]\n",
				len(lines)-most, found.Main, document.BodyLine+most)
		}
		return result
	})
}

type readFileArguments struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

type readFileResult struct {
	Content    string `json:"content" doc:"The lines, as they are in the file."`
	FileSize   int    `json:"file_size" doc:"Bytes of the file."`
	TotalLines int    `json:"total_lines" doc:"Lines of the file."`
	LinesRead  int    `json:"lines_read" doc:"Lines of the content."`
	Note       string `json:"note,omitempty" doc:"Whether there are more lines, and how to read on."`
}

func (o Options) readSkillFile() tools.Tool {
	return tools.New(tools.Definition{
		Name: "read_skill_file",
		Description: "Reads lines of a text file of a skill, when the instructions of the skill name it. A note says if " +
			"there are more.",
		InputSchema: arguments.Object(map[string]any{
			"name":   nameArgument,
			"path":   arguments.Text(1, maxPath, "The file, relative to the skill, such as scripts/fill.py."),
			"offset": arguments.Integer(1, skill.MaxFileBytes, 1, "The first line to read, from 1 on."),
			"limit":  arguments.Integer(1, maxLines, defaultLines, "How many lines to read at most."),
		}, "name", "path"),
		Traits: o.traits(),
		Reference: tools.Reference{
			Offered: offered, Result: readFileResult{},
			Errors: []string{
				"There is no such skill, as with read_skill, or it has no such file: the error names those that there are.",
				"The path is absolute, has .. or a name that begins with a dot, or leads out of the workspace's directory.",
				"The file is no UTF-8 text, or too large.",
			},
			Limits: []string{
				fmt.Sprintf("A third of the model's context, at least 16 KiB and at most %d KiB, of whole lines. A line that "+
					"is longer than that is cut, with a marker.", tools.MaxResultBytes>>10),
				fmt.Sprintf("A file has at most %d KiB.", skill.MaxFileBytes>>10),
			},
		},
	}, o.runReadSkillFile)
}

func (o Options) runReadSkillFile(ctx context.Context, call tools.Call, args readFileArguments) (string, error) {
	file, err := skill.CheckPath(args.Path)
	if err != nil {
		return "", err
	}
	found, err := o.find(ctx, call.Chat, args.Name)
	if err != nil {
		return "", err
	}
	content, err := found.File(ctx, file)
	switch {
	case err != nil:
		return "", fileProblem(ctx, found, file, err)
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return "", fmt.Errorf("%.200q of skill %s is not UTF-8 text%s", file, found.FullName(),
			adviceFor(found, file, "look at it with execute, or with attach_file if it is an image"))
	}
	lines := slices.Collect(strings.Lines(string(content)))
	first := min(args.Offset-1, len(lines))
	last := min(len(lines), first+args.Limit)
	return tools.FitLines(call.Chat, last-first, func(most, maxLine int) any {
		r := readFileResult{Content: joinLines(lines[first:first+most], maxLine), FileSize: len(content),
			TotalLines: len(lines), LinesRead: most}
		if next := first + most; next < len(lines) {
			r.Note = fmt.Sprintf("The file has %d lines: continue at offset %d.", len(lines), next+1)
		} else if most == 0 {
			r.Note = fmt.Sprintf("There is nothing from line %d on.", args.Offset)
		}
		return r
	})
}

// joinLines joins the lines, and shortens each that has more than maxLine bytes, with a marker.
func joinLines(lines []string, maxLine int) string {
	var text strings.Builder
	for _, line := range lines {
		if most := max(minLine, maxLine); len(line) > most {
			start := clip.Bytes(line, most)
			line = fmt.Sprintf("%s[... %d bytes of this line left out ...]\n", start, len(line)-len(start))
		}
		text.WriteString(line)
	}
	return text.String()
}
