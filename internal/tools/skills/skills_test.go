// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/protocol"
)

func named(name string) map[string]any { return map[string]any{"name": name} }

func fileOf(name, path string) map[string]any { return map[string]any{"name": name, "path": path} }

func TestASkillOfAConfigMapIsRead(t *testing.T) {
	b := newBench(t)
	want := map[string]any{"name": "configmap/pdf", "description": "Fills in forms.", "body": "Run scripts/fill.py.\n",
		"files": []any{"SKILL.md", "logo.png", "scripts/fill.py"}}
	if diff := cmp.Diff(want, b.good("read_skill", named("configmap/pdf"))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	want = map[string]any{"content": "print('filled')\n", "file_size": 16.0, "total_lines": 1.0, "lines_read": 1.0}
	if diff := cmp.Diff(want, b.good("read_skill_file", fileOf("configmap/pdf", "./scripts/fill.py"))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if b.asked != 0 {
		t.Errorf("the workspace was asked for %d times", b.asked)
	}
}

func TestASkillInTheWorkspaceIsRead(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "---\nname: builds\ndescription: Builds.\n---\nRun it.")
	b.write(".agents/skills/build/scripts/run.sh", "make\n")
	b.write(".agents/skills/build/.env", "KEY=1\n")
	want := map[string]any{"name": "workspace/builds", "description": "Builds.", "body": "Run it.",
		"files": []any{"SKILL.md", "scripts/run.sh"}, "dir": ".agents/skills/build"}
	for _, name := range []string{"workspace/builds", "builds"} {
		if diff := cmp.Diff(want, b.good("read_skill", named(name))); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	if got := b.good("read_skill_file", fileOf("workspace/builds", "scripts/run.sh")); got["content"] != "make\n" {
		t.Errorf("got %v", got)
	}
}

func TestSkillsAreFoundWhereALinkLeads(t *testing.T) {
	b := newBench(t)
	b.write(".claude/skills/build/SKILL.md", "Run it.")
	b.write(".claude/skills/build/docs/how.md", "Call make.")
	if err := os.Mkdir(filepath.Join(b.dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../.claude/skills", filepath.Join(b.dir, ".agents/skills")); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "workspace/build", "body": "Run it.", "files": []any{"SKILL.md", "docs/how.md"},
		"dir": ".agents/skills/build"}
	if diff := cmp.Diff(want, b.good("read_skill", named("workspace/build"))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := b.good("read_skill_file", fileOf("workspace/build", "docs/how.md")); got["content"] != "Call make." {
		t.Errorf("got %v", got)
	}
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
		if err := os.Symlink(to, filepath.Join(b.dir, ".agents/skills", name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]map[string]any{
		"workspace/build": {"body": "Build.", "files": []any{"SKILL.md", "docs/how.md"}, "dir": ".agents/skills/build"},
		"workspace/test":  {"body": "Test.", "files": []any{"skill.md"}, "dir": ".agents/skills/test"},
		"workspace/lints": {"body": "Lint.", "files": []any{"skill.md"}, "dir": ".agents/skills/lint"},
	} {
		want["name"] = name
		if diff := cmp.Diff(want, b.good("read_skill", named(name))); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	b.refused("the skills are: workspace/build, workspace/lints, workspace/test", "read_skill", named("workspace/gone"))
	if got := b.good("read_skill_file", fileOf("workspace/build", "docs/how.md")); got["content"] != "Call make." {
		t.Errorf("got %v", got)
	}
}

func TestOnlySkillsOfTheWorkspaceNeedIt(t *testing.T) {
	without := &v1alpha1.Chat{}
	b := newBench(t)
	registry := tools.NewRegistry(Tools(b.options())...)
	for name, c := range map[string]struct {
		chat  *v1alpha1.Chat
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
				if got := registry.NeedWorkspace(c.chat, []v1alpha1.ToolCall{{Name: tool, Input: c.input}}); got != c.want {
					t.Errorf("%s needs it: %t", tool, got)
				}
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
		chat := &v1alpha1.Chat{}
		if c.named {
			chat = b.chat
		}
		if b.none = c.none; b.options().mayHaveSkills(chat) != c.want {
			t.Errorf("%s: it is offered: %t", name, !c.want)
		}
	}
}

func TestUnqualifiedSkillNameResolvesOnlyIfUnique(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/pdf/SKILL.md", "Ours.")
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.refused(`there is more than one skill "pdf": name configmap/pdf or workspace/pdf`, "read_skill", named("pdf"))
	if got := b.good("read_skill", named("workspace/pdf")); got["body"] != "Ours." {
		t.Errorf("got %v", got)
	}
	if got := b.good("read_skill", named("build")); got["body"] != "Build." {
		t.Errorf("got %v", got)
	}
	b.refused(`there is no skill "x"; the skills are: configmap/pdf, configmap/mail, workspace/build, workspace/pdf`,
		"read_skill", named("x"))
	b.refused(`there is no skill "configmap/build"; the skills are: configmap/pdf, configmap/mail`, "read_skill",
		named("configmap/build"))

	b.stopped = true
	if got := b.good("read_skill", named("pdf")); got["body"] != "Run scripts/fill.py.\n" {
		t.Errorf("while the workspace is stopped: %v", got)
	}
	b.refused(`The workspace was not asked, as it does not run: for a skill in it, name "workspace/build"`, "read_skill",
		named("build"))
	b.refused("the workspace of this chat cannot be used: WorkspaceStopped", "read_skill", named("workspace/build"))

	b.none = true
	b.refused(`there is no skill "workspace/build"; the skills are: configmap/pdf, configmap/mail`, "read_skill",
		named("workspace/build"))
}

func TestUnresponsiveWorkspaceDoesNotBlockConfigMapSkills(t *testing.T) {
	b := newBench(t)
	b.agent.Before = func(http.ResponseWriter, *http.Request) bool {
		<-t.Context().Done()
		return true
	}
	if got := b.good("read_skill", named("pdf")); got["name"] != "configmap/pdf" {
		t.Errorf("got %v", got)
	}
}

func TestAPathLeadsNowhereOutOfASkill(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.write(".agents/skills/build/.env", "KEY=1")
	b.write("secret", "s")
	for name, path := range map[string]string{"out": "../../../../etc", "device": "/dev/zero"} {
		if err := os.Symlink(path, filepath.Join(b.dir, ".agents/skills/build", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, ".agents/skills/build/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	b.refused(`there is no skill "workspace/a"; the skills are: none`, "read_skill", named("workspace/a"))
}

func TestASkillThatCannotBeReadIsNone(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "Build.")
	if err := os.MkdirAll(filepath.Join(b.dir, ".agents/skills/leak"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(b.dir, ".agents/skills/leak/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	b.refused("the skills are: workspace/build", "read_skill", named("workspace/leak"))
}

func TestWhatIsNoTextIsNotShown(t *testing.T) {
	b := newBench(t)
	b.write(".agents/skills/build/SKILL.md", "Build.")
	b.write(".agents/skills/build/a.bin", "\xff\xfe")
	b.refused(`"logo.png" of skill configmap/pdf is not UTF-8 text`, "read_skill_file", fileOf("pdf", "logo.png"))
	b.refused(`at ".agents/skills/build/a.bin"`, "read_skill_file", fileOf("workspace/build", "a.bin"))
}

func TestALargeFileIsRefused(t *testing.T) {
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
				b.chat.Status.Context = &v1alpha1.ContextStatus{Limit: limit}
			}
			raw := b.call("read_skill", named("configmap/pdf")).Output
			got := b.good("read_skill", named("configmap/pdf"))["body"].(string)
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

func TestOneLongLineIsCut(t *testing.T) {
	b := newBench(t)
	b.named["mail"]["SKILL.md"] = strings.Repeat("é\x01", 100<<10)
	for tool, field := range map[string]string{"read_skill": "body", "read_skill_file": "content"} {
		got := b.good(tool, map[string]any{"read_skill": named("mail"), "read_skill_file": fileOf("mail", "SKILL.md")}[tool].(map[string]any))
		if text := got[field].(string); !strings.Contains(text, "bytes of this line left out ...]") || len(text) < 4<<10 {
			t.Errorf("%s has %d bytes", tool, len(text))
		}
	}
}

func TestManyFilesAreListedInPart(t *testing.T) {
	b := newBench(t)
	for i := range 150 {
		b.named["mail"][fmt.Sprintf("f%03d", i)] = "x"
	}
	got := b.good("read_skill", named("configmap/mail"))
	if files := got["files"].([]any); len(files) != 100 || got["note"] != "The skill has more files than these." {
		t.Errorf("%d files and note %v", len(files), got["note"])
	}
	b.refused("f098, and more", "read_skill_file", fileOf("configmap/mail", "x"))
}

func TestNothingIsBehindTheEndOfAFile(t *testing.T) {
	b := newBench(t)
	got := b.good("read_skill_file", map[string]any{"name": "configmap/mail", "path": "SKILL.md", "offset": 7})
	if got["content"] != "" || got["note"] != "There is nothing from line 7 on." {
		t.Errorf("got %v", got)
	}
}
