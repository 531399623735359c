// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skills has the tools with which a model reads skills: those of the ConfigMaps that its chat names, and those
// in the workspace. A call for a skill of a ConfigMap neither starts the workspace nor waits for it.
package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/tools/workspace"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	offered = "chats that have `spec.skillsFrom`, or a workspace"
	// maxName bounds the characters of a name with its source. It is more than any has.
	maxName = 200
	// glanceTimeout bounds the search in a workspace that the call does not need, listTimeout that in one it needs.
	glanceTimeout, listTimeout = 2 * time.Second, 30 * time.Second
	// maxFiles and maxFilesBytes bound the list of files of a skill, so that there is room for its text.
	maxFiles, maxFilesBytes = 100, 4 << 10

	workspacePrefix = string(skill.FromWorkspace) + "/"
)

// Options of the tools. All are required.
type Options struct {
	// OfChat reads the skills that the chat names in skillsFrom and that exist.
	OfChat func(ctx context.Context, chat *v1beta1.Chat) ([]skill.Skill, error)
	// Workspaces of the chats.
	Workspaces workspace.Workspaces
	// Has reports whether a chat has a workspace.
	Has func(chat *v1beta1.Chat) bool
}

// Tools returns all tools of the package.
func Tools(o Options) []tools.Tool { return []tools.Tool{o.readSkill(), o.readSkillFile()} }

func (o Options) traits() tools.Traits {
	return tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: o.mayHaveSkills, Repeatable: true,
		MayNeedWorkspace: func(chat *v1beta1.Chat, input string) bool {
			var args struct {
				Name string `json:"name"`
			}
			return json.Unmarshal([]byte(input), &args) == nil && o.needsWorkspace(chat, args.Name)
		}}
}

func (o Options) mayHaveSkills(chat *v1beta1.Chat) bool {
	return len(chat.Spec.SkillsFrom) > 0 || o.Has(chat)
}

// needsWorkspace reports whether the skill of that name is in the workspace. A bare name is, if the chat names no
// ConfigMaps. Otherwise it finds a skill in the workspace only while that runs.
func (o Options) needsWorkspace(chat *v1beta1.Chat, name string) bool {
	return o.Has(chat) && (strings.HasPrefix(name, workspacePrefix) ||
		!strings.Contains(name, "/") && len(chat.Spec.SkillsFrom) == 0)
}

// nameArgument is the schema of the name of a skill.
var nameArgument = arguments.Text(1, maxName, "The skill, as it is listed: configmap/NAME or workspace/NAME. NAME "+
	"alone is enough where only one has it.")

// find is the skill of that name. The error is for the model.
func (o Options) find(ctx context.Context, chat *v1beta1.Chat, name string) (*skill.Skill, error) {
	if o.needsWorkspace(chat, name) {
		all, err := o.inWorkspace(ctx, chat)
		if err != nil {
			return nil, err
		}
		return skill.Find(all, name)
	}
	all, err := o.OfChat(ctx, chat)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("the skills of this chat cannot be read: %w", err)
	case !o.Has(chat) || strings.Contains(name, "/"):
		return skill.Find(all, name)
	}
	within, cancel := context.WithTimeout(ctx, glanceTimeout)
	defer cancel()
	more, noAnswer := o.inWorkspace(within, chat)
	found, err := skill.Find(append(all, more...), name)
	if err != nil && noAnswer != nil {
		return nil, fmt.Errorf("%w. The workspace was not asked, as it does not run: for a skill in it, name %.200q", err,
			workspacePrefix+name)
	}
	return found, err
}

func (o Options) inWorkspace(ctx context.Context, chat *v1beta1.Chat) ([]skill.Skill, error) {
	client, err := workspace.Open(ctx, o.Workspaces, chat)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	found, err := InWorkspace(within, client)
	if err != nil {
		return nil, workspace.Problem(ctx, err)
	}
	return found.Skills, nil
}

// fileProblem explains to the model why a file cannot be read.
func fileProblem(ctx context.Context, s *skill.Skill, file string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, skill.ErrTooLarge):
		return fmt.Errorf("%.200q of skill %s is too large: it may have %d KiB%s", file, s.FullName(),
			skill.MaxFileBytes>>10, adviceFor(s, file, "read_file reads a part of it"))
	case !errors.Is(err, skill.ErrNoFile):
		return fmt.Errorf("%.200q of skill %s cannot be read: %w", file, s.FullName(), err)
	}
	files, more, err := listed(ctx, s)
	if err != nil {
		return fmt.Errorf("skill %s has no file %.200q; its files cannot be listed", s.FullName(), file)
	}
	if more {
		files = append(files, "and more")
	}
	return fmt.Errorf("skill %s has no file %.200q; its files are: %s", s.FullName(), file, strings.Join(files, ", "))
}

// adviceFor says how to read a file of the workspace otherwise; empty for a ConfigMap.
func adviceFor(s *skill.Skill, file, advice string) string {
	if s.Dir == "" {
		return ""
	}
	return fmt.Sprintf("; %s, at %.300q", advice, s.Dir+"/"+file)
}

// listed are the first files of a skill, within the limits.
func listed(ctx context.Context, s *skill.Skill) (files []string, more bool, err error) {
	all, more, err := s.Files(ctx)
	size := 0
	for i, file := range all {
		if size += len(file); i == maxFiles || size > maxFilesBytes {
			return all[:i:i], true, err
		}
	}
	return all, more, err
}

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
