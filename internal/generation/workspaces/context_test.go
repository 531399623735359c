// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspaces

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
)

// contextOf is what a workspace with these files says, by file.
func contextOf(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	agent := fakeworkspace.Start(t)
	agent.Search = func(asked protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error) {
		check.Equal(t, "it searches", []any{".agents/skills", "{*,*/SKILL.md,*/skill.md}", true},
			[]any{asked.Path, asked.Glob, asked.Hidden})
		found := &protocol.SearchResponse{}
		for name := range files {
			if strings.HasPrefix(name, asked.Path+"/") {
				found.Matches = append(found.Matches, protocol.Match{Path: name})
			}
		}
		if len(found.Matches) == 0 {
			return nil, &protocol.Error{Code: protocol.NotFound, Message: "there is no such directory"}
		}
		return found, nil
	}
	client := agent.Client()
	for name, content := range files {
		if _, err := client.Write(t.Context(), "k-"+fmt.Sprint(len(name)), name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	said := map[string]string{}
	read, ok := contextIn(t.Context(), client)
	if !ok {
		t.Error("it counts as not answered")
	}
	for _, file := range read {
		content, err := file.Content()
		check.Equal(t, "error, media type", []any{nil, "text/markdown"}, []any{err, file.MediaType})
		said[file.Name] = string(content)
	}
	return said
}

const index = "Skills of this workspace: folders with instructions and files for tasks of a kind. Before such a " +
	"task, read the skill with read_skill, and follow it; read_skill_file reads a file of it.\n\n"

// code has lines that would include files if they were not in blocks of code.
const code = "```\n@x.md\n~~~\n``` no end\n@x.md\n````\n  ~~~~ go `a`\n@x.md\n~~~\n```\n@x.md\n\t~~~~~ \r\n"

func TestAWorkspaceSaysHowToWorkInIt(t *testing.T) {
	const skill = ".agents/skills/pdf/SKILL.md"
	for name, c := range map[string]struct{ files, want map[string]string }{
		"nothing": {nil, map[string]string{}},
		"instructions": {map[string]string{"AGENTS.md": "Run make test."}, map[string]string{
			"AGENTS.md": "Run make test.\n"}},
		"instructions that include others, each once": {map[string]string{"AGENTS.md": "One.\n@docs/a.md\n@docs/a.md\nmail a@b.c\n@ x\n",
			"docs/a.md": "Two.\r\n@../AGENTS.md\n@b.md", "docs/b.md": "Three."}, map[string]string{
			"AGENTS.md": "One.\nTwo.\r\nThree.\nmail a@b.c\n@ x\n"}},
		"instructions that include what is not there": {map[string]string{"AGENTS.md": "@x.md\nOne.\n"}, map[string]string{
			"AGENTS.md": "[x.md was not read: there is no such file]\nOne.\n"}},
		"instructions that include a binary file": {map[string]string{"AGENTS.md": "One.\n@logo.png\n@old.txt\nTwo.\n",
			"logo.png": "\x89PNG\r\n\x1a\n", "old.txt": "a\x00b"}, map[string]string{
			"AGENTS.md": "One.\n[logo.png was not read: it is not UTF-8 text]\n" +
				"[old.txt was not read: it is not UTF-8 text]\nTwo.\n"}},
		"instructions that show code": {map[string]string{"AGENTS.md": code + "@a.md\n", "a.md": "Two.\n```\n@b.md\n"},
			map[string]string{"AGENTS.md": code + "Two.\n```\n@b.md\n"}},
		"code that ends before others": {map[string]string{"AGENTS.md": "@a.md\n@b.md\n", "a.md": "```\n@x.md", "b.md": "@c.md",
			"c.md": "Three."}, map[string]string{"AGENTS.md": "```\n@x.md\nThree.\n"}},
		"marks that begin no code": {map[string]string{"AGENTS.md": "``` a`b\n``\n@a.md\n", "a.md": "One."},
			map[string]string{"AGENTS.md": "``` a`b\n``\nOne.\n"}},
		"blank instructions": {map[string]string{"AGENTS.md": " \n"}, map[string]string{}},
		"a skill": {map[string]string{skill: "---\r\nname: pdf\r\ndescription: \"Fills\\e[31m in forms.\"\r\n---\r\nDo it."},
			map[string]string{"SKILLS.md": index + "- workspace/pdf (" + skill + "): Fills [31m in forms.\n"}},
		"a skill that says nothing": {map[string]string{skill: "Do it."},
			map[string]string{"SKILLS.md": index + "- workspace/pdf (" + skill + ")\n"}},
		"a skill that is no YAML": {map[string]string{skill: "---\nname: [\n---\n"},
			map[string]string{"SKILLS.md": index + "- workspace/pdf (" + skill + ")\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "the result", c.want, contextOf(t, c.files))
		})
	}
}

func TestSkillsThatCannotBeReadAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		links map[string]string
		want  string
	}{
		"one of them": {map[string]string{".agents/skills/leak": "/etc", ".agents/skills/ring": "ring", "low": "/etc"},
			index + "- workspace/pdf (.agents/skills/pdf/skill.md)\n" +
				"[.agents/skills/leak was not read: \".agents/skills/leak/SKILL.md\": the link \".agents/skills/leak\" leads " +
				"out of the workspace, to \"/etc\". Use execute for files elsewhere.]\n" +
				"[.agents/skills/ring was not read: The links of \".agents/skills/ring/SKILL.md\" lead in a circle.]\n"},
		"all of them": {map[string]string{".agents/skills": "/etc"},
			"[.agents/skills was not read: \".agents/skills\": the link \".agents/skills\" leads out of the workspace, to " +
				"\"/etc\". Use execute for files elsewhere.]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, agent := t.TempDir(), fakeworkspace.Start(t)
			agent.ServeDirectory(t, dir)
			check.OK(t, os.MkdirAll(filepath.Join(dir, ".agents"), 0o700))
			if c.links[".agents/skills"] == "" {
				writeTo(t, dir, ".agents/skills/pdf/skill.md", "Do it.")
			}
			for link, to := range c.links {
				check.OK(t, os.Symlink(to, filepath.Join(dir, link)))
			}
			read, ok := contextIn(t.Context(), agent.Client())
			check.Equal(t, "answered, files", []any{true, 1, "SKILLS.md"}, []any{ok, len(read), read[0].Name})
			got, _ := read[0].Content()
			check.Equal(t, "what it says", c.want, string(got))
		})
	}
}

func writeTo(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	check.OK(t, os.MkdirAll(filepath.Dir(file), 0o700))
	check.OK(t, os.WriteFile(file, []byte(content), 0o600))
}

func TestInstructionsHaveAnEnd(t *testing.T) {
	long := contextOf(t, map[string]string{"AGENTS.md": strings.Repeat("é", 100<<10)})["AGENTS.md"]
	if !strings.HasSuffix(long, contextCut) || len(long) > maxContext+len(contextCut) {
		t.Errorf("%d bytes that end with %q", len(long), long[len(long)-50:])
	}
	chain := map[string]string{"AGENTS.md": "@a\n@b\n"}
	for i := range 40 {
		chain[strings.Repeat("a", i+1)] = fmt.Sprintf("%d\n@%s\n@AGENTS.md\n", i, strings.Repeat("a", i+2))
	}
	got := contextOf(t, chain)["AGENTS.md"]
	check.Contains(t, got, "15\n")
	check.Lacks(t, got, "16\n")
}

func TestUnansweringWorkspaceIsAskedAgainLater(t *testing.T) {
	const skill = ".agents/skills/pdf/SKILL.md"
	for name, path := range map[string]string{
		"its instructions": "/v1/files?path=AGENTS.md", "what they include": "/v1/files?path=more.md",
		"its skills": "/v1/search", "a skill": "/v1/files?" + url.Values{"path": {skill}}.Encode(),
	} {
		t.Run(name, func(t *testing.T) {
			agent := fakeworkspace.Start(t)
			agent.Search = func(protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error) {
				return &protocol.SearchResponse{Matches: []protocol.Match{{Path: skill}}}, nil
			}
			agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut && r.URL.RequestURI() == path {
					panic(http.ErrAbortHandler)
				}
				return false
			}
			client := agent.Client()
			for file, content := range map[string]string{"AGENTS.md": "One.\n@more.md\n", "more.md": "Two.", skill: "Do it."} {
				if _, err := client.Write(t.Context(), "k-"+fmt.Sprint(len(file)), file, []byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			if files, ok := contextIn(t.Context(), client); ok {
				t.Errorf("it counts as read: %+v", files)
			}
		})
	}
}
