// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"context"
	"errors"
	"path"
	"strings"

	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools/workspace"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// Directory is where the skills of a workspace are.
	Directory = ".agents/skills"
	// lowerMain is the name that some write in place of skill.MainFile.
	lowerMain = "skill.md"
	// maxEntries is how many entries of the directory are looked at: others than skills are among them.
	maxEntries = 2 * skill.MaxIndexed
	// maxFound is how many files of a skill are looked for.
	maxFound = 1000
)

// Found are the skills in a workspace.
type Found struct {
	// Skills are in the order of their paths, at most skill.MaxIndexed.
	Skills []skill.Skill
	// More reports whether there are others.
	More bool
	// Unread says of each folder that cannot be read why, by its path.
	Unread []Unread
}

// Unread is a folder that cannot be read, such as a link to a folder outside the workspace.
type Unread struct {
	Dir string
	Err error
}

// InWorkspace are the skills in the workspace: the folders in .agents/skills, or links to folders in the workspace,
// that have a SKILL.md or skill.md. What it reads is the workspace's word alone: a workspace may say what it likes, but
// only of itself.
func InWorkspace(ctx context.Context, c *client.Client) (found Found, err error) {
	// A link to a folder is an entry like a file: the search does not follow it.
	entries, err := c.Search(ctx, protocol.SearchRequest{Path: Directory, Hidden: true, Limit: maxEntries,
		Glob: "{*,*/" + skill.MainFile + ",*/" + lowerMain + "}"})
	if isCode(err, protocol.NotFound) {
		return Found{}, nil
	}
	if err != nil {
		return Found{}, err
	}
	found.More = entries.Truncated
	var names skill.Names
	seen := map[string]bool{}
	for _, match := range entries.Matches[:min(len(entries.Matches), maxEntries)] {
		folder, ok := folderOf(match.Path)
		if !ok || seen[folder] {
			continue
		}
		if len(found.Skills) == skill.MaxIndexed {
			found.More = true
			break
		}
		seen[folder] = true
		if err := found.add(ctx, c, folder, &names); err != nil {
			return Found{}, err
		}
	}
	return found, nil
}

// add adds the skill in a folder, or why it cannot be read. The error is that of a workspace that has not answered.
func (f *Found) add(ctx context.Context, c *client.Client, folder string, names *skill.Names) error {
	dir := path.Join(Directory, folder)
	main, content, err := mainOf(ctx, c, dir)
	_, refused := errors.AsType[*protocol.Error](err)
	switch {
	case isCode(err, protocol.NotFound): // It is no folder of a skill.
		return nil
	case refused:
		f.Unread = append(f.Unread, Unread{dir, err})
		return nil
	case err != nil:
		return err
	}
	about := skill.Parse(content)
	f.Skills = append(f.Skills, skill.Skill{
		Source: skill.FromWorkspace, Name: names.Next(about.Name, folder), Description: about.Description,
		Dir: dir, Main: main,
		Files: func(ctx context.Context) ([]string, bool, error) { return filesIn(ctx, c, dir, main) },
		File: func(ctx context.Context, file string) ([]byte, error) {
			return contentOf(ctx, c, path.Join(dir, file))
		},
	})
	return nil
}

// mainOf is the file with the instructions of the skill in a folder.
func mainOf(ctx context.Context, c *client.Client, dir string) (main string, content []byte, err error) {
	for _, main = range []string{skill.MainFile, lowerMain} {
		content, err = c.Content(ctx, path.Join(dir, main), skill.MaxFileBytes)
		if !isCode(err, protocol.NotFound) {
			break
		}
	}
	return main, content, err
}

// folderOf is the name of the folder that may be that of a skill: the one that a SKILL.md or skill.md is said to be in,
// or what is said to be at another path. Only the name counts: where the skills are may be behind a link.
func folderOf(file string) (folder string, ok bool) {
	folder = path.Base(file)
	if folder == skill.MainFile || folder == lowerMain {
		folder = path.Base(path.Dir(file))
	}
	_, err := skill.CheckPath(folder)
	return folder, err == nil
}

// filesIn are the files in the folder of a skill, without those that are hidden or that ignore files name.
func filesIn(ctx context.Context, c *client.Client, dir, main string) (files []string, more bool, err error) {
	// What is found is named by where links lead; so is the file with the instructions.
	there, err := c.Search(ctx, protocol.SearchRequest{Path: dir, Glob: main, Hidden: true, Limit: 1})
	if err != nil {
		return nil, false, workspace.Problem(ctx, err)
	}
	if len(there.Matches) == 0 {
		return nil, false, nil // It has just been removed.
	}
	found, err := c.Search(ctx, protocol.SearchRequest{Path: dir, Limit: maxFound})
	if err != nil {
		return nil, false, workspace.Problem(ctx, err)
	}
	for _, match := range found.Matches {
		file, ok := strings.CutPrefix(match.Path, strings.TrimSuffix(there.Matches[0].Path, main))
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
