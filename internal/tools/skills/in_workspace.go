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
	// lowerMain is a common variant of skill.MainFile.
	lowerMain = "skill.md"
	// maxEntries bounds the entries of the directory that are read: some are no skills.
	maxEntries = 2 * skill.MaxIndexed
	// maxFound bounds the search for files of a skill.
	maxFound = 1000
)

// Found are the skills in a workspace.
type Found struct {
	// Skills are in the order of their paths, at most skill.MaxIndexed.
	Skills []skill.Skill
	// More reports whether there are others.
	More bool
	// Unread are the folders that cannot be read, sorted by path.
	Unread []Unread
}

// Unread is a folder that cannot be read, such as a link to a folder outside the workspace.
type Unread struct {
	Dir string
	Err error
}

// InWorkspace finds the skills in the workspace: the folders in .agents/skills, or links to folders in the workspace,
// that have a SKILL.md or skill.md.
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

// add adds the skill in a folder, or the reason why it cannot be read. It fails if the workspace does not answer.
func (f *Found) add(ctx context.Context, c *client.Client, folder string, names *skill.Names) error {
	dir := path.Join(Directory, folder)
	main, content, err := readMain(ctx, c, dir)
	_, refused := errors.AsType[*protocol.Error](err)
	switch {
	case isCode(err, protocol.NotFound): // The folder has no skill.
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
		Files: func(ctx context.Context) ([]string, bool, error) { return listFiles(ctx, c, dir, main) },
		File: func(ctx context.Context, file string) ([]byte, error) {
			return readFile(ctx, c, path.Join(dir, file))
		},
	})
	return nil
}

// readMain reads the file with the instructions of the skill in a folder.
func readMain(ctx context.Context, c *client.Client, dir string) (main string, content []byte, err error) {
	for _, main = range []string{skill.MainFile, lowerMain} {
		content, err = c.Content(ctx, path.Join(dir, main), skill.MaxFileBytes)
		if !isCode(err, protocol.NotFound) {
			break
		}
	}
	return main, content, err
}

// folderOf is the folder of a search result: that of a SKILL.md or skill.md, or else the entry itself, which may be a
// link. Its path does not count: the directory of the skills may be a link, too.
func folderOf(file string) (folder string, ok bool) {
	folder = path.Base(file)
	if folder == skill.MainFile || folder == lowerMain {
		folder = path.Base(path.Dir(file))
	}
	_, err := skill.CheckPath(folder)
	return folder, err == nil
}

// listFiles lists the files in the folder of a skill, without hidden and ignored ones.
func listFiles(ctx context.Context, c *client.Client, dir, main string) (files []string, more bool, err error) {
	// Search results have resolved paths. The path of the main file has the prefix of the folder.
	mains, err := c.Search(ctx, protocol.SearchRequest{Path: dir, Glob: main, Hidden: true, Limit: 1})
	if err != nil {
		return nil, false, workspace.Problem(ctx, err)
	}
	if len(mains.Matches) == 0 {
		return nil, false, nil // The skill was removed meanwhile.
	}
	found, err := c.Search(ctx, protocol.SearchRequest{Path: dir, Limit: maxFound})
	if err != nil {
		return nil, false, workspace.Problem(ctx, err)
	}
	for _, match := range found.Matches {
		file, ok := strings.CutPrefix(match.Path, strings.TrimSuffix(mains.Matches[0].Path, main))
		if _, err := skill.CheckPath(file); ok && err == nil {
			files = append(files, file)
		}
	}
	return files, found.Truncated, nil
}

func readFile(ctx context.Context, c *client.Client, file string) ([]byte, error) {
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
