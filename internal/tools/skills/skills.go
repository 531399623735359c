// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skills holds the tools by which a model reads skills: those of the ConfigMaps that its chat names, and those
// in the workspace. They only read. A call for a skill of a ConfigMap neither starts the workspace nor waits for it.
package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/tools/workspace"
)

const (
	// offered is to which chats the tools are offered.
	offered = "chats that have `spec.skillsFrom`, or a workspace"
	// maxName is how many characters a name may have with its source: more than any has.
	maxName = 200
	// glance is how long the workspace may take to say whether it has a skill of the name, too, while it is not needed.
	glance = 2 * time.Second
	// listing is how long it may take to say which skills it has, where it is needed.
	listing = 30 * time.Second
)

// Options of the tools. All are required.
type Options struct {
	// OfChat reads the skills that the chat names in skillsFrom, without those that are not there.
	OfChat func(ctx context.Context, chat *v1alpha1.Chat) ([]skill.Skill, error)
	// Workspaces of the chats.
	Workspaces workspace.Workspaces
	// Has reports whether a chat has a workspace.
	Has func(chat *v1alpha1.Chat) bool
}

// Tools are all of them.
func Tools(o Options) []tools.Tool {
	own := &common{o}
	return []tools.Tool{readSkill{own}, readSkillFile{own}}
}

// common is what the tools share.
type common struct{ options Options }

// suits reports whether the chat can have skills.
func (c *common) suits(chat *v1alpha1.Chat) bool {
	return len(chat.Spec.SkillsFrom) > 0 || c.options.Has(chat)
}

// mayNeedWorkspace reports whether the name is one of a skill in the workspace. A bare name is, in a chat that names
// no other skills; elsewhere it finds one in the workspace only while that runs.
func (c *common) mayNeedWorkspace(chat *v1alpha1.Chat, input string) bool {
	var given struct {
		Name string `json:"name"`
	}
	if json.Unmarshal([]byte(input), &given) != nil { // The call will be told so.
		return false
	}
	return c.needs(chat, given.Name)
}

func (c *common) needs(chat *v1alpha1.Chat, name string) bool {
	switch {
	case !c.options.Has(chat):
		return false
	case from(name, skill.FromWorkspace):
		return true
	}
	return !strings.Contains(name, "/") && len(chat.Spec.SkillsFrom) == 0
}

func from(name string, source skill.Source) bool { return strings.HasPrefix(name, string(source)+"/") }

// nameArgument is the schema of the name of a skill.
func nameArgument() map[string]any {
	return arguments.Text(1, maxName, "The skill, as it is listed: configmap/NAME or workspace/NAME. NAME alone is "+
		"enough where only one has it.")
}

// find is the skill of that name. The error is for the model.
func (c *common) find(ctx context.Context, chat *v1alpha1.Chat, name string) (*skill.Skill, error) {
	var all []skill.Skill
	needed := c.needs(chat, name)
	if !needed || !from(name, skill.FromWorkspace) {
		named, err := c.ofChat(ctx, chat)
		if err != nil {
			return nil, err
		}
		all = named
	}
	if needed {
		there, err := c.inWorkspace(ctx, chat)
		if err != nil {
			return nil, err
		}
		return skill.Find(append(all, there...), name)
	}
	if !c.options.Has(chat) || strings.Contains(name, "/") {
		return skill.Find(all, name)
	}
	there, answered := c.glance(ctx, chat)
	found, err := skill.Find(append(all, there...), name)
	if err != nil && !answered {
		return nil, fmt.Errorf("%w. The workspace was not asked, as it does not run: for a skill in it, name %.200q", err,
			string(skill.FromWorkspace)+"/"+name)
	}
	return found, err
}

func (c *common) ofChat(ctx context.Context, chat *v1alpha1.Chat) ([]skill.Skill, error) {
	named, err := c.options.OfChat(ctx, chat)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("the skills of this chat cannot be read: %w", err)
	}
	return named, nil
}

func (c *common) inWorkspace(ctx context.Context, chat *v1alpha1.Chat) ([]skill.Skill, error) {
	client, err := workspace.Open(ctx, c.options.Workspaces, chat)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, listing)
	defer cancel()
	there, err := InWorkspace(within, client)
	if err != nil {
		return nil, workspace.Problem(ctx, err)
	}
	return there.Skills, nil
}

// glance is what the workspace has, if it says so at once: the call does not need it, and it may not run.
func (c *common) glance(ctx context.Context, chat *v1alpha1.Chat) (there []skill.Skill, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	there, err := c.inWorkspace(ctx, chat)
	return there, err == nil
}

// fileProblem says why a file cannot be had, for the model.
func fileProblem(ctx context.Context, s *skill.Skill, file string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, skill.ErrTooLarge):
		return fmt.Errorf("%.200q of skill %s is too large: it may have %d KiB%s", file, s.FullName(),
			skill.MaxFileBytes>>10, inDir(s, "read_file reads a part of it", file))
	case errors.Is(err, skill.ErrNoFile):
		return fmt.Errorf("skill %s has no file %.200q; %s", s.FullName(), file, filesOf(ctx, s))
	}
	return fmt.Errorf("%.200q of skill %s cannot be read: %w", file, s.FullName(), err)
}

// inDir is what to do with a file instead, if it is in the workspace.
func inDir(s *skill.Skill, instead, file string) string {
	if s.Dir == "" {
		return ""
	}
	return fmt.Sprintf("; %s, at %.300q", instead, s.Dir+"/"+file)
}

func filesOf(ctx context.Context, s *skill.Skill) string {
	files, more, err := listed(ctx, s)
	if err != nil {
		return "its files cannot be listed"
	}
	and := ""
	if more {
		and = ", and more"
	}
	return "its files are: " + strings.Join(files, ", ") + and
}

const (
	// maxFiles and maxFilesBytes bound how many files of a skill are listed, so that there is room for its text.
	maxFiles, maxFilesBytes = 100, 4 << 10
)

// listed are the files of a skill, as many as are shown.
func listed(ctx context.Context, s *skill.Skill) (files []string, more bool, err error) {
	all, more, err := s.Files(ctx)
	if err != nil {
		return nil, false, err
	}
	size := 0
	for i, file := range all {
		if size += len(file); i == maxFiles || size > maxFilesBytes {
			return files, true, nil
		}
		files = append(files, file)
	}
	return files, more, nil
}
