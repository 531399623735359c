// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func skillNamed(name string) map[string]any { return map[string]any{"name": name} }

func fileOf(name, path string) map[string]any { return map[string]any{"name": name, "path": path} }

func TestSkillOfConfigMapIsRead(t *testing.T) {
	b := newBench(t)
	want := map[string]any{"name": "configmap/pdf", "description": "Fills in forms.", "body": "Run scripts/fill.py.\n",
		"files": []any{"SKILL.md", "logo.png", "scripts/fill.py"}}
	check.Equal(t, "result", want, b.good("read_skill", skillNamed("configmap/pdf")))
	want = map[string]any{"content": "print('filled')\n", "file_size": 16.0, "total_lines": 1.0, "lines_read": 1.0}
	check.Equal(t, "result", want, b.good("read_skill_file", fileOf("configmap/pdf", "./scripts/fill.py")))
	if b.asked != 0 {
		t.Errorf("the workspace was asked for %d times", b.asked)
	}
}

func TestSkillInWorkspaceIsRead(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "---\nname: builds\ndescription: Builds.\n---\nRun it.")
	b.write(".agents/skills/build/scripts/run.sh", "make\n")
	b.write(".agents/skills/build/.env", "KEY=1\n")
	want := map[string]any{"name": "workspace/builds", "description": "Builds.", "body": "Run it.",
		"files": []any{"SKILL.md", "scripts/run.sh"}, "dir": ".agents/skills/build"}
	for _, name := range []string{"workspace/builds", "builds"} {
		check.Equal(t, name, want, b.good("read_skill", skillNamed(name)))
	}
	check.Equal(t, "content", "make\n", b.good("read_skill_file", fileOf("workspace/builds", "scripts/run.sh"))["content"])
}

func TestSkillsAreFoundWhereALinkLeads(t *testing.T) {
	b := newBench(t)
	b.write(".claude/skills/build/SKILL.md", "Run it.")
	b.write(".claude/skills/build/docs/how.md", "Call make.")
	b.link("skills", "../.claude/skills")
	want := map[string]any{"name": "workspace/build", "body": "Run it.", "files": []any{"SKILL.md", "docs/how.md"},
		"dir": ".agents/skills/build"}
	check.Equal(t, "result", want, b.good("read_skill", skillNamed("workspace/build")))
	check.Equal(t, "content", "Call make.", b.good("read_skill_file", fileOf("workspace/build", "docs/how.md"))["content"])
}

func TestLinkedAndLowerCaseSkillsAreFound(t *testing.T) {
	b := newBench(t)
	b.write("shared/build/SKILL.md", "Build.")
	b.write("shared/build/docs/how.md", "Call make.")
	b.write("shared/test/skill.md", "Test.")
	b.write(".agents/skills/lint/skill.md", "---\nname: lints\n---\nLint.")
	b.write(".agents/skills/README.md", "No skill.")
	for name, to := range map[string]string{"build": "../../shared/build", "test": filepath.Join(b.dir, "shared/test"),
		"gone": "../../nothing"} {
		b.link("skills/"+name, to)
	}
	for name, want := range map[string]map[string]any{
		"workspace/build": {"body": "Build.", "files": []any{"SKILL.md", "docs/how.md"}, "dir": ".agents/skills/build"},
		"workspace/test":  {"body": "Test.", "files": []any{"skill.md"}, "dir": ".agents/skills/test"},
		"workspace/lints": {"body": "Lint.", "files": []any{"skill.md"}, "dir": ".agents/skills/lint"},
	} {
		want["name"] = name
		check.Equal(t, name, want, b.good("read_skill", skillNamed(name)))
	}
	b.refused("the skills are: workspace/build, workspace/lints, workspace/test", "read_skill",
		skillNamed("workspace/gone"))
	check.Equal(t, "content", "Call make.", b.good("read_skill_file", fileOf("workspace/build", "docs/how.md"))["content"])
}

// Security (a hostile skill or AGENTS.md): cannot start the workspace, if it is a ConfigMap's.
func TestOnlySkillsOfWorkspaceNeedWorkspace(t *testing.T) {
	without := &v1beta1.Chat{}
	b := newBench(t)
	registry := tools.NewRegistry(Tools(b.options())...)
	for name, c := range map[string]struct {
		chat  *v1beta1.Chat
		none  bool
		input string
		want  bool
	}{
		"a skill of a ConfigMap":                         {b.chat, false, `{"name":"configmap/pdf"}`, false},
		"a skill in the workspace":                       {b.chat, false, `{"name":"workspace/pdf"}`, true},
		"a bare name":                                    {b.chat, false, `{"name":"pdf"}`, false},
		"a bare name, where the chat names no skills":    {without, false, `{"name":"pdf"}`, true},
		"a ConfigMap, where the chat names no skills":    {without, false, `{"name":"configmap/pdf"}`, false},
		"a skill in the workspace of a chat without one": {b.chat, true, `{"name":"workspace/pdf"}`, false},
		"arguments that are none":                        {without, false, `{"name":[]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			b.none = c.none
			for _, tool := range []string{"read_skill", "read_skill_file"} {
				check.Equal(t, tool, c.want, registry.NeedWorkspace(c.chat, []v1beta1.ToolCall{{Name: tool, Input: c.input}}))
			}
		})
	}
}

func TestSkillToolsAreOfferedOnlyWithSkillSources(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct{ named, none, want bool }{
		"both": {true, false, true}, "ConfigMaps": {true, true, true}, "a workspace": {false, false, true},
		"neither": {false, true, false},
	} {
		chat := &v1beta1.Chat{}
		if c.named {
			chat = b.chat
		}
		if b.none = c.none; b.options().mayHaveSkills(chat) != c.want {
			t.Errorf("%s: it is offered: %t", name, !c.want)
		}
	}
}

// Security (a hostile skill or AGENTS.md): can, in a workspace that runs, have the name of a ConfigMap's skill, so that
// the name alone is refused.
func TestUnqualifiedSkillNameResolvesOnlyIfUnique(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/pdf/SKILL.md", "Ours.")
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.refused(`there is more than one skill "pdf": name configmap/pdf or workspace/pdf`, "read_skill", skillNamed("pdf"))
	check.Equal(t, "body", "Ours.", b.good("read_skill", skillNamed("workspace/pdf"))["body"])
	check.Equal(t, "body", "Build.", b.good("read_skill", skillNamed("build"))["body"])
	b.refused(`there is no skill "x"; the skills are: configmap/pdf, configmap/mail, workspace/build, workspace/pdf`,
		"read_skill", skillNamed("x"))
	b.refused(`there is no skill "configmap/build"; the skills are: configmap/pdf, configmap/mail`, "read_skill",
		skillNamed("configmap/build"))

	b.stopped = true
	check.Equal(t, "body", "Run scripts/fill.py.\n", b.good("read_skill", skillNamed("pdf"))["body"])
	b.refused(`The workspace was not asked, as it does not run: for a skill in it, name "workspace/build"`, "read_skill",
		skillNamed("build"))
	b.refused("the workspace of this chat cannot be used: WorkspaceStopped", "read_skill", skillNamed("workspace/build"))

	b.none = true
	b.refused(`there is no skill "workspace/build"; the skills are: configmap/pdf, configmap/mail`, "read_skill",
		skillNamed("workspace/build"))
}

func TestUnresponsiveWorkspaceDoesNotBlockConfigMapSkills(t *testing.T) {
	b := newBench(t)
	b.agent.Before = func(http.ResponseWriter, *http.Request) bool {
		<-t.Context().Done()
		return true
	}
	check.Equal(t, "name", "configmap/pdf", b.good("read_skill", skillNamed("pdf"))["name"])
}

// Security (a hostile skill or AGENTS.md): cannot make a file outside of its folder be read, by a path, a link, a
// device or a pipe. Also TestUnreadableSkillIsNotListed of internal/tools/skills.
func TestPathOutsideSkillIsRefused(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.write(".agents/skills/build/.env", "KEY=1")
	b.write("secret", "s")
	for name, path := range map[string]string{"out": "../../../../etc", "device": "/dev/zero"} {
		b.link("skills/build/"+name, path)
	}
	check.OK(t, syscall.Mkfifo(filepath.Join(b.dir, ".agents/skills/build/pipe"), 0o600))
	for path, words := range map[string]string{
		"../../../secret": "it must be relative", "/etc/passwd": "it must be relative", ".env": "begin with a dot",
		"a/../SKILL.md": "it must be relative", "out/passwd": "(OutsideWorkspace)", "device": "(OutsideWorkspace)",
		"pipe": "(NotRegular)", "missing": "has no file \"missing\"; its files are: ",
	} {
		b.refused(words, "read_skill_file", fileOf("workspace/build", path))
		if !strings.HasPrefix(words, "(") {
			b.refused(strings.ReplaceAll(words, "its files are: ", "its files are: SKILL.md"), "read_skill_file",
				fileOf("configmap/mail", path))
		}
	}
}

// Security (a hostile skill or AGENTS.md): cannot name files of the workspace, or paths out of it, as skills, even if
// the workspace's agent lies.
func TestWorkspaceSkillsIgnorePathsOutsideSkillFolders(t *testing.T) {
	b := newBench(t)
	b.write("AGENTS.md", "Here.")
	b.agent.Search = func(protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error) {
		var found protocol.SearchResponse
		for _, path := range []string{"../SKILL.md", "/etc/SKILL.md", ".agents/skills/../../SKILL.md", ".agents/skills/SKILL.md",
			".agents/skills/a/b/SKILL.md", ".agents/skills/.git/SKILL.md", ".agents/skills/a/AGENTS.md", "AGENTS.md"} {
			found.Matches = append(found.Matches, protocol.Match{Path: path})
		}
		return &found, nil
	}
	b.refused(`there is no skill "workspace/a"; the skills are: none`, "read_skill", skillNamed("workspace/a"))
}

func TestUnreadableSkillIsNotListed(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.link("skills/leak/SKILL.md", "/etc/hostname")
	b.refused("the skills are: workspace/build", "read_skill", skillNamed("workspace/leak"))
}

func TestBinaryFileIsRefused(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.write(".agents/skills/build/a.bin", "\xff\xfe")
	b.refused(`"logo.png" of skill configmap/pdf is not UTF-8 text`, "read_skill_file", fileOf("pdf", "logo.png"))
	b.refused(`at ".agents/skills/build/a.bin"`, "read_skill_file", fileOf("workspace/build", "a.bin"))
}

func TestLargeFileIsRefused(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.write(".agents/skills/build/large", strings.Repeat("x", 512<<10+1))
	b.refused(`it may have 512 KiB; read_file reads a part of it, at ".agents/skills/build/large"`, "read_skill_file",
		fileOf("workspace/build", "large"))
}

func TestLongSkillIsTruncatedAndReadableByOffset(t *testing.T) {
	b := newBench(t)
	var body strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&body, "Line \"%d\" of the skill.\n", i)
	}
	b.named["pdf"]["SKILL.md"] = "---\nname: pdf\n---\n" + body.String()
	for name, limit := range map[string]int64{"a large context": 0, "a small context": 16 << 10} {
		t.Run(name, func(t *testing.T) {
			if limit > 0 {
				b.chat.Status.Context = &v1beta1.ContextStatus{Limit: limit}
			}
			raw := b.call("read_skill", skillNamed("configmap/pdf")).Output
			got := b.good("read_skill", skillNamed("configmap/pdf"))["body"].(string)
			kept, marker, ok := strings.Cut(got, "[... ")
			if !ok || !strings.HasPrefix(body.String(), kept) || len(raw) > tools.ResultLimitOf(b.chat) ||
				len(raw) < tools.ResultLimitOf(b.chat)*9/10 {
				t.Fatalf("%d bytes, the marker is %q", len(raw), marker)
			}
			var left, offset int
			if _, err := fmt.Sscanf(marker, "%d lines left out: read_skill_file reads SKILL.md on from offset %d ...]", &left,
				&offset); err != nil {
				t.Fatalf("the marker is %q: %v", marker, err)
			}
			next := b.good("read_skill_file", map[string]any{"name": "configmap/pdf", "path": "SKILL.md", "offset": offset, "limit": 2})
			rest := strings.TrimPrefix(body.String(), kept)
			if content := next["content"].(string); !strings.HasPrefix(rest, content) || strings.Count(content, "\n") != 2 ||
				next["note"] != fmt.Sprintf("The file has 10003 lines: continue at offset %d.", offset+2) {
				t.Errorf("it goes on with %v", next)
			}
		})
	}
}

func TestLongLineIsTruncated(t *testing.T) {
	b := newBench(t)
	b.named["mail"]["SKILL.md"] = strings.Repeat("é\x01", 100<<10)
	for tool, field := range map[string]string{"read_skill": "body", "read_skill_file": "content"} {
		got := b.good(tool, map[string]any{"read_skill": skillNamed("mail"), "read_skill_file": fileOf("mail", "SKILL.md")}[tool].(map[string]any))
		if text := got[field].(string); !strings.Contains(text, "bytes of this line left out ...]") || len(text) < 4<<10 {
			t.Errorf("%s has %d bytes", tool, len(text))
		}
	}
}

func TestListOfFilesIsLimited(t *testing.T) {
	b := newBench(t)
	for i := range 150 {
		b.named["mail"][fmt.Sprintf("f%03d", i)] = "x"
	}
	got := b.good("read_skill", skillNamed("configmap/mail"))
	if files := got["files"].([]any); len(files) != 100 || got["note"] != "The skill has more files than these." {
		t.Errorf("%d files and note %v", len(files), got["note"])
	}
	b.refused("f098, and more", "read_skill_file", fileOf("configmap/mail", "x"))
}

func TestOffsetBeyondEndReturnsNothing(t *testing.T) {
	b := newBench(t)
	got := b.good("read_skill_file", map[string]any{"name": "configmap/mail", "path": "SKILL.md", "offset": 7})
	if got["content"] != "" || got["note"] != "There is nothing from line 7 on." {
		t.Errorf("got %v", got)
	}
}
