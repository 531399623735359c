// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// defaultLines and maxLines bound the lines of a call.
	defaultLines, maxLines = 2000, 10_000
	// minLineBytes is how many bytes of a long line are shown at least.
	minLineBytes  = 256
	maxLineNumber = 1_000_000_000
)

// images are the file name extensions of images.
var images = []string{".bmp", ".gif", ".heic", ".ico", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}

type readFile struct{ *common }

type readFileResult struct {
	Content    string `json:"content" doc:"The lines, each with its number and a tab before it, as cat -n writes them."`
	FileSize   int64  `json:"file_size" doc:"Bytes of the file."`
	TotalLines int64  `json:"total_lines,omitempty" doc:"Lines of the file, unless it is too large to count them."`
	LinesRead  int64  `json:"lines_read" doc:"Lines of the content."`
	Note       string `json:"note,omitempty" doc:"Whether there are more lines, and how to read on."`
}

func (t readFile) Definition() tools.Definition {
	return tools.Definition{
		Name: "read_file",
		Description: "Reads lines of a text file of the workspace. Each line of the content has its number and a tab " +
			"before it, which are not in the file. A note says if there are more.",
		InputSchema: arguments.Object(map[string]any{
			"path":   pathArgument,
			"offset": arguments.Integer(1, maxLineNumber, 1, "The first line to read, from 1 on."),
			"limit":  arguments.Integer(1, maxLines, defaultLines, "How many lines to read at most."),
		}, "path"),
		Traits: t.readTraits(),
		Reference: tools.Reference{
			Offered: offered, Result: readFileResult{},
			Errors: []string{
				"There is no such file, it is a directory, a device or a pipe, or it leads out of the workspace's directory.",
				"The file is no UTF-8 text. Of an image the error says that attach_file shows it.",
			},
			Limits: []string{
				fmt.Sprintf("A third of the model's context, at least 16 KiB and at most %d KiB, of whole lines. A line that "+
					"is longer than that is cut, with a marker.", tools.MaxResultBytes>>10),
				"The content is exact, control characters included, so that edit_files finds what was read.",
			},
		},
	}
}

func (t readFile) Run(ctx context.Context, call tools.Call) (string, error) {
	args := protocol.ReadRequest{MaxBytes: int64(tools.ResultLimitOf(call.Chat))}
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &args)
	if err != nil {
		return "", err
	}
	got, err := workspace.Read(ctx, args)
	if isCode(err, protocol.NotText) {
		return "", notText(args.Path)
	}
	if err != nil {
		return "", Problem(ctx, err)
	}
	lines := slices.Collect(strings.Lines(got.Content))
	first := args.Offset
	if got.FirstLine > 0 && got.FirstLine <= maxLineNumber {
		first = got.FirstLine
	}
	return tools.FitLines(call.Chat, len(lines),
		func(most, room int) any { return t.result(got, lines[:most], first, room) })
}

// result is the result with these lines. Each is cut to the room for it.
func (readFile) result(got *protocol.ReadResponse, lines []string, first int64, room int) readFileResult {
	var content strings.Builder
	for i, line := range lines {
		if most := max(minLineBytes, room); len(line) > most {
			kept := clip.Bytes(line, most)
			line = fmt.Sprintf("%s[... %d bytes of this line left out ...]\n", kept, len(line)-len(kept))
		}
		content.WriteString(strconv.FormatInt(first+int64(i), 10))
		content.WriteByte('\t')
		content.WriteString(line)
	}
	r := readFileResult{
		Content: content.String(), FileSize: max(0, got.Size), TotalLines: max(0, got.TotalLines),
		LinesRead: int64(len(lines)),
	}
	next := first + r.LinesRead
	switch {
	case got.TotalLines == 0:
		r.Note = "The file is empty."
	case len(lines) == 0:
		r.Note = fmt.Sprintf("There is nothing from line %d on.", first)
	case got.TotalLines < 0 || next <= got.TotalLines:
		r.Note = fmt.Sprintf("There may be more: continue at offset %d.", next)
		if got.TotalLines > 0 {
			r.Note = fmt.Sprintf("The file has %d lines: continue at offset %d.", got.TotalLines, next)
		}
	case !strings.HasSuffix(r.Content, "\n"):
		r.Note = "The last line does not end with a newline."
	}
	return r
}

// notText tells what to do with a file that is no text.
func notText(file string) error {
	if slices.Contains(images, strings.ToLower(path.Ext(file))) {
		return fmt.Errorf("%.200q is an image, not a text: attach_file shows it", file)
	}
	return fmt.Errorf("%.200q is not UTF-8 text: look at it with execute, for example with file or od", file)
}
