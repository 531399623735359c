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
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

const (
	// maxPath is how many characters a path may have.
	maxPath = 1024
	// defaultLines and maxLines are how many lines a call reads by default and at most.
	defaultLines, maxLines = 2000, 10_000
	// leastOfLine is how many bytes of a line are shown however long it is.
	leastOfLine = 256
)

// readSkillFile reads a file of a skill.
type readSkillFile struct{ *common }

type readSkillFileResult struct {
	Content    string `json:"content" doc:"The lines, as they are in the file."`
	FileSize   int    `json:"file_size" doc:"Bytes of the file."`
	TotalLines int    `json:"total_lines" doc:"Lines of the file."`
	LinesRead  int    `json:"lines_read" doc:"Lines of the content."`
	Note       string `json:"note,omitempty" doc:"Whether there are more lines, and how to read on."`
}

func (t readSkillFile) Definition() tools.Definition {
	return tools.Definition{
		Name: "read_skill_file",
		Description: "Reads lines of a text file of a skill, when the instructions of the skill name it. A note says if " +
			"there are more.",
		InputSchema: arguments.Object(map[string]any{
			"name":   nameArgument(),
			"path":   arguments.Text(1, maxPath, "The file, relative to the skill, such as scripts/fill.py."),
			"offset": arguments.Integer(1, skill.MaxFileBytes, 1, "The first line to read, from 1 on."),
			"limit":  arguments.Integer(1, maxLines, defaultLines, "How many lines to read at most."),
		}, "name", "path"),
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: t.suits, Repeatable: true,
			MayNeedWorkspace: t.mayNeedWorkspace},
		Reference: tools.Reference{
			Offered: offered, Result: readSkillFileResult{},
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
	}
}

// Run reads the file.
func (t readSkillFile) Run(ctx context.Context, call tools.Call) (string, error) {
	var given struct {
		Name   string `json:"name"`
		Path   string `json:"path"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return "", err
	}
	file, err := skill.CheckPath(given.Path)
	if err != nil {
		return "", err
	}
	found, err := t.find(ctx, call.Chat, given.Name)
	if err != nil {
		return "", err
	}
	content, err := found.File(ctx, file)
	switch {
	case err != nil:
		return "", fileProblem(ctx, found, file, err)
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return "", fmt.Errorf("%.200q of skill %s is not UTF-8 text%s", file, found.FullName(),
			inDir(found, "look at it with execute, or with attach_file if it is an image", file))
	}
	lines := slices.Collect(strings.Lines(string(content)))
	from := min(given.Offset-1, len(lines))
	asked := lines[from:min(len(lines), from+given.Limit)]
	return tools.FitLines(call.Chat, len(asked), func(most, room int) any {
		r := readSkillFileResult{Content: joined(asked[:most], room), FileSize: len(content), TotalLines: len(lines),
			LinesRead: most}
		if next := from + most; next < len(lines) {
			r.Note = fmt.Sprintf("The file has %d lines: continue at offset %d.", len(lines), next+1)
		} else if most == 0 {
			r.Note = fmt.Sprintf("There is nothing from line %d on.", given.Offset)
		}
		return r
	})
}

// joined are the lines as one text. One that has more bytes than there is room for is cut, with a marker.
func joined(lines []string, room int) string {
	var text strings.Builder
	for _, line := range lines {
		if most := max(leastOfLine, room); len(line) > most {
			kept := clip.Bytes(line, most)
			line = fmt.Sprintf("%s[... %d bytes of this line left out ...]\n", kept, len(line)-len(kept))
		}
		text.WriteString(line)
	}
	return text.String()
}
