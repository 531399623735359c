// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// maxContent bounds the characters of a file, as those of a reply.
const maxContent = 1 << 20

type writeFile struct{ *common }

type writeFileResult struct {
	OK      bool   `json:"ok" doc:"Always true: everything else is an error."`
	Path    string `json:"path" doc:"The file, relative to the workspace's directory."`
	Size    int64  `json:"size" doc:"Its bytes."`
	Created bool   `json:"created,omitempty" doc:"Whether there was no such file before."`
}

func (t writeFile) Definition() tools.Definition {
	return tools.Definition{
		Name: "write_file",
		Description: "Writes a file of the workspace as a whole, with the directories that lead to it. What was there " +
			"before is replaced. To change a part of a file, call edit_files.",
		InputSchema: arguments.Object(map[string]any{
			"path":    pathArgument,
			"content": arguments.Text(0, maxContent, "What the file is to hold."),
		}, "path", "content"),
		Traits: tools.Traits{UsefulTo: t.hasWorkspace, Repeatable: true, NeedsWorkspace: true},
		Reference: tools.Reference{
			Offered: offered, Result: writeFileResult{},
			Errors: []string{
				"The path leads out of the workspace's directory, or to a directory, a device or a pipe.",
				"The storage is full, or the workspace's user may not write there.",
				"The write was begun before a crash, and whether it was made is not known.",
			},
			Limits: []string{fmt.Sprintf("%d characters.", maxContent)},
		},
	}
}

func (t writeFile) Run(ctx context.Context, call tools.Call) (string, error) {
	var args struct{ Path, Content string }
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &args)
	if err != nil {
		return "", err
	}
	info, err := workspace.Write(ctx, call.Key, args.Path, []byte(args.Content))
	if err != nil {
		return "", Problem(ctx, err)
	}
	result := writeFileResult{OK: true, Path: info.Path, Size: int64(len(args.Content)), Created: info.Created}
	return tools.Fit(call.Chat, 0, func(int) any { return result })
}
