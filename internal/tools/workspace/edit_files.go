// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/protocol"
)

// maxEdits bounds the edits of a call.
const maxEdits = 100

type editFiles struct{ *common }

type editedFile struct {
	Path     string `json:"path" doc:"A file that was changed."`
	Replaced int    `json:"replaced" doc:"How many occurrences were replaced."`
	Diff     string `json:"diff" doc:"What has changed, as a unified diff."`
}

type editFilesResult struct {
	Files []editedFile `json:"files" doc:"The files that were changed."`
	Note  string       `json:"note,omitempty" doc:"Whether diffs were shortened."`
}

func (t editFiles) Definition() tools.Definition {
	edit := arguments.Object(map[string]any{
		"path": pathArgument,
		"old_text": arguments.Text(0, maxContent,
			"The text to replace, which must occur exactly once, unless replace_all is true. "+
				"Empty: the file must not exist or be empty, and new_text becomes its content."),
		"new_text":    arguments.Text(0, maxContent, "The text to put in its place."),
		"replace_all": arguments.Boolean("Whether to replace every occurrence."),
	}, "path", "old_text", "new_text")
	return tools.Definition{
		Name: "edit_files",
		Description: "Replaces texts in files of the workspace, and returns the changes as diffs. All edits of a call are " +
			"made, or, if one is wrong, none. Edits of the same file are made one after the other. Give old_text exactly as " +
			"it is in the file, without the line numbers that read_file shows, and long enough to occur once.",
		InputSchema: arguments.Object(map[string]any{
			"edits": map[string]any{
				"type": "array", "minItems": 1, "maxItems": maxEdits, "items": edit, "description": "The edits, in their order.",
			},
		}, "edits"),
		Traits: tools.Traits{UsefulTo: t.hasWorkspace, Repeatable: true, NeedsWorkspace: true},
		Reference: tools.Reference{
			Offered: offered, Result: editFilesResult{},
			Errors: []string{
				"A text does not occur, or more than once; nothing was changed then.",
				"A file does not exist, is no UTF-8 text or no regular file, or leads out of the workspace's directory.",
				"The storage is full, or the workspace's user may not write there.",
				"The edits were begun before a crash, and whether they were made is not known.",
			},
			Limits: []string{fmt.Sprintf("%d edits, of together %d MiB.", maxEdits, protocol.MaxRequestBytes>>20)},
		},
	}
}

func (t editFiles) Run(ctx context.Context, call tools.Call) (string, error) {
	var args struct {
		Edits []struct {
			Path       string `json:"path"`
			OldText    string `json:"old_text"`
			NewText    string `json:"new_text"`
			ReplaceAll bool   `json:"replace_all"`
		} `json:"edits"`
	}
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &args)
	if err != nil {
		return "", err
	}
	var r protocol.EditRequest
	for _, edit := range args.Edits {
		r.Edits = append(r.Edits, protocol.Edit(edit))
	}
	got, err := workspace.Edit(ctx, call.Key, r)
	if err != nil {
		return "", Problem(ctx, err)
	}
	return tools.Fit(call.Chat, tools.ResultLimitOf(call.Chat), func(most int) any { return cutDiffs(got.Files, most) })
}

// cutDiffs is the result with diffs of at most so many bytes each.
func cutDiffs(files []protocol.EditedFile, most int) editFilesResult {
	result := editFilesResult{Files: []editedFile{}}
	for i := range files {
		f := &files[i]
		diff := tools.Truncate(f.Diff, most)
		if len(diff) != len(f.Diff) {
			result.Note = "Diffs were shortened: read_file shows the files."
		}
		result.Files = append(result.Files, editedFile{Path: f.Path, Replaced: f.Replaced, Diff: diff})
	}
	return result
}
