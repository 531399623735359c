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
	"strings"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/tools/workspace"
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
	OfChat func(ctx context.Context, chat *v1alpha1.Chat) ([]skill.Skill, error)
	// Workspaces of the chats.
	Workspaces workspace.Workspaces
	// Has reports whether a chat has a workspace.
	Has func(chat *v1alpha1.Chat) bool
}

// Tools returns all tools of the package.
func Tools(o Options) []tools.Tool { return []tools.Tool{o.readSkill(), o.readSkillFile()} }

func (o Options) traits() tools.Traits {
	return tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: o.mayHaveSkills, Repeatable: true,
		MayNeedWorkspace: func(chat *v1alpha1.Chat, input string) bool {
			var args struct {
				Name string `json:"name"`
			}
			return json.Unmarshal([]byte(input), &args) == nil && o.needsWorkspace(chat, args.Name)
		}}
}

func (o Options) mayHaveSkills(chat *v1alpha1.Chat) bool {
	return len(chat.Spec.SkillsFrom) > 0 || o.Has(chat)
}

// needsWorkspace reports whether the skill of that name is in the workspace. A bare name is, if the chat names no
// ConfigMaps. Otherwise it finds a skill in the workspace only while that runs.
func (o Options) needsWorkspace(chat *v1alpha1.Chat, name string) bool {
	return o.Has(chat) && (strings.HasPrefix(name, workspacePrefix) ||
		!strings.Contains(name, "/") && len(chat.Spec.SkillsFrom) == 0)
}

// nameArgument is the schema of the name of a skill.
var nameArgument = arguments.Text(1, maxName, "The skill, as it is listed: configmap/NAME or workspace/NAME. NAME alone "+
	"is enough where only one has it.")

// find is the skill of that name. The error is for the model.
func (o Options) find(ctx context.Context, chat *v1alpha1.Chat, name string) (*skill.Skill, error) {
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

func (o Options) inWorkspace(ctx context.Context, chat *v1alpha1.Chat) ([]skill.Skill, error) {
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
