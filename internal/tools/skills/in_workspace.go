// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"context"
	"errors"
	"path"
	"strings"

	"parley.dev/parley/internal/skill"
	"parley.dev/parley/internal/tools/workspace"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// directory is where the skills of a workspace are.
	directory = ".agents/skills"
	// maxFound is how many files of a skill are looked for.
	maxFound = 1000
)

// InWorkspace are the skills in the workspace: the folders in .agents/skills that have a SKILL.md, in the order of
// their paths, at most skill.MaxIndexed. more: there are others. What it reads is the workspace's word alone: a
// workspace may say what it likes, but only of itself.
func InWorkspace(ctx context.Context, c *client.Client) (all []skill.Skill, more bool, err error) {
	found, err := c.Search(ctx, protocol.SearchRequest{Path: directory, Glob: "*/" + skill.MainFile, Hidden: true,
		Limit: skill.MaxIndexed})
	if isCode(err, protocol.NotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var names skill.Names
	for _, match := range found.Matches[:min(len(found.Matches), skill.MaxIndexed)] {
		folder, ok := folderOf(match.Path)
		if !ok {
			continue
		}
		dir := path.Join(directory, folder)
		content, err := c.Content(ctx, path.Join(dir, skill.MainFile), skill.MaxFileBytes)
		if _, refused := errors.AsType[*protocol.Error](err); refused {
			continue // One that cannot be read, such as a link to elsewhere, is no skill.
		}
		if err != nil {
			return nil, false, err
		}
		about := skill.Parse(content)
		all = append(all, skill.Skill{
			Source: skill.FromWorkspace, Name: names.Next(about.Name, folder), Description: about.Description,
			Dir:   dir,
			Files: func(ctx context.Context) ([]string, bool, error) { return filesIn(ctx, c, dir) },
			File: func(ctx context.Context, file string) ([]byte, error) {
				return contentOf(ctx, c, path.Join(dir, file))
			},
		})
	}
	return all, found.Truncated, nil
}

// folderOf is the name of the folder of a skill whose SKILL.md is said to be at the path. Only the name counts: where
// the skills are may be behind a link.
func folderOf(file string) (folder string, ok bool) {
	folder = path.Base(path.Dir(file))
	_, err := skill.CheckPath(folder)
	return folder, err == nil && path.Base(file) == skill.MainFile
}

// filesIn are the files in the folder of a skill, without those that are hidden or that ignore files name.
func filesIn(ctx context.Context, c *client.Client, dir string) (files []string, more bool, err error) {
	// What is found is named by where links lead; so is the SKILL.md in the folder.
	main, err := c.Search(ctx, protocol.SearchRequest{Path: dir, Glob: skill.MainFile, Hidden: true, Limit: 1})
	if err != nil {
		return nil, false, workspace.Problem(ctx, err)
	}
	if len(main.Matches) == 0 {
		return nil, false, nil // It has just been removed.
	}
	found, err := c.Search(ctx, protocol.SearchRequest{Path: dir, Limit: maxFound})
	if err != nil {
		return nil, false, workspace.Problem(ctx, err)
	}
	for _, match := range found.Matches {
		file, ok := strings.CutPrefix(match.Path, path.Dir(main.Matches[0].Path)+"/")
		if _, err := skill.CheckPath(file); ok && err == nil {
			files = append(files, file)
		}
	}
	return files, found.Truncated, nil
}

func contentOf(ctx context.Context, c *client.Client, file string) ([]byte, error) {
	content, err := c.Content(ctx, file, skill.MaxFileBytes)
	switch {
	case isCode(err, protocol.NotFound):
		return nil, skill.ErrNoFile
	case isCode(err, protocol.TooLarge):
		return nil, skill.ErrTooLarge
	case err != nil:
		return nil, workspace.Problem(ctx, err)
	}
	return content, nil
}

func isCode(err error, code protocol.ErrorCode) bool {
	refused, ok := errors.AsType[*protocol.Error](err)
	return ok && refused.Code == code
}
