// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
)

// bench has the tools, skills of ConfigMaps, and a workspace.
type bench struct {
	t *testing.T
	// named are the skills that the chat names: their files, by the name of the skill.
	named map[string]map[string]string
	// dir is the workspace's directory.
	dir string
	// stopped makes the workspace one that does not run; none: the chat has none.
	stopped, none bool
	// asked is how often the workspace was asked for.
	asked int
	chat  *v1beta1.Chat
	agent *fakeworkspace.Agent
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), chat: &v1beta1.Chat{}, agent: fakeworkspace.Start(t)}
	b.chat.Spec.SkillsFrom = []v1beta1.SkillSource{{}}
	b.named = map[string]map[string]string{
		"pdf": {"SKILL.md": "---\nname: pdf\ndescription: Fills in forms.\n---\nRun scripts/fill.py.\n",
			"scripts/fill.py": "print('filled')\n", "logo.png": "\x89PNG\x00"},
		"mail": {"SKILL.md": "Be kind."},
	}
	b.agent.ServeDirectory(t, b.dir)
	return b
}

// Of is the workspace.
func (b *bench) Of(context.Context, *v1beta1.Chat) (*client.Client, error) {
	b.asked++
	if b.stopped {
		return nil, errors.New("WorkspaceStopped: Idle")
	}
	return b.agent.Client(), nil
}

func (b *bench) options() Options {
	return Options{Workspaces: b, Has: func(*v1beta1.Chat) bool { return !b.none },
		OfChat: func(context.Context, *v1beta1.Chat) (all []skill.Skill, err error) {
			for _, name := range []string{"pdf", "mail"} {
				all = append(all, inMemory(name, b.named[name]))
			}
			return all, nil
		}}
}

// inMemory is a skill of a ConfigMap.
func inMemory(name string, files map[string]string) skill.Skill {
	about := skill.Parse([]byte(files[skill.MainFile]))
	return skill.Skill{Source: skill.FromConfigMap, Name: name, Description: about.Description, Main: skill.MainFile,
		Files: func(context.Context) (paths []string, more bool, err error) {
			for path := range files {
				paths = append(paths, path)
			}
			slices.Sort(paths)
			return paths, false, nil
		},
		File: func(_ context.Context, path string) ([]byte, error) {
			content, ok := files[path]
			if !ok {
				return nil, skill.ErrNoFile
			}
			return []byte(content), nil
		}}
}

// write writes a file of the workspace.
func (b *bench) write(name, content string) {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	check.OK(b.t, os.MkdirAll(filepath.Dir(file), 0o700))
	check.OK(b.t, os.WriteFile(file, []byte(content), 0o600))
}

// link makes a link in the skills of the workspace.
func (b *bench) link(name, to string) {
	b.t.Helper()
	file := filepath.Join(b.dir, ".agents", name)
	check.OK(b.t, os.MkdirAll(filepath.Dir(file), 0o700))
	check.OK(b.t, os.Symlink(to, file))
}

// call makes a call as a batch does.
func (b *bench) call(name string, arguments map[string]any) v1beta1.ToolResult {
	b.t.Helper()
	input, err := json.Marshal(arguments)
	check.OK(b.t, err)
	return tools.NewRegistry(Tools(b.options())...).Execute(b.t.Context(), &tools.Batch{Chat: b.chat,
		Calls: []v1beta1.ToolCall{{ID: "1", Name: name, Input: string(input)}}}, nil)[0]
}

// good is the result of a call that must succeed.
func (b *bench) good(name string, arguments map[string]any) map[string]any {
	b.t.Helper()
	r := b.call(name, arguments)
	var got map[string]any
	if err := json.Unmarshal([]byte(r.Output), &got); err != nil || r.IsError {
		b.t.Fatalf("%s of %v failed: %s", name, arguments, r.Output)
	}
	return got
}

// refused checks that a call fails with these words.
func (b *bench) refused(words, name string, arguments map[string]any) {
	b.t.Helper()
	if r := b.call(name, arguments); !r.IsError || !strings.Contains(r.Output, words) {
		b.t.Errorf("%s of %v says %q (an error: %t), want %q", name, arguments, r.Output, r.IsError, words)
	}
}
