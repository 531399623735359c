// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// run runs a program as process.Manager.Capture does, which needs a process of its own.
func run(ctx context.Context, r *protocol.StartRequest, input string, read func(io.Reader) error) error {
	program, err := exec.LookPath(r.Argv[0])
	if err != nil {
		return &protocol.Error{Code: protocol.CannotStart, Message: err.Error()}
	}
	c := exec.CommandContext(ctx, program, r.Argv[1:]...)
	c.Dir, c.Env, c.Stdin = r.Dir, append(os.Environ(), r.Env...), strings.NewReader(input)
	var message strings.Builder
	c.Stderr = &message
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	err = read(out)
	if failed, ok := errors.AsType[*exec.ExitError](c.Wait()); ok {
		return &process.ExitError{Code: failed.ExitCode(), Message: message.String()}
	}
	return err
}

// workspace is a directory with the files of a workspace.
type workspace struct {
	t *testing.T
	Workspace
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // Those who run tests may have settings.
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for name, value := range map[string]string{"GIT_AUTHOR_NAME": "Anna", "GIT_AUTHOR_EMAIL": "anna@example.com",
		"GIT_COMMITTER_NAME": "Anna", "GIT_COMMITTER_EMAIL": "anna@example.com"} {
		t.Setenv(name, value)
	}
	return &workspace{t, Workspace{Directory: t.TempDir(), State: t.TempDir(), Since: time.Unix(1_700_000_000, 0),
		Run: run, patience: time.Hour}}
}

// git runs git in a directory of the workspace.
func (w *workspace) git(dir string, args ...string) string {
	w.t.Helper()
	c := exec.CommandContext(w.t.Context(), "git", append([]string{"-c", "protocol.file.allow=always",
		"-c", "init.defaultBranch=main", "-C", filepath.Join(w.Directory, dir)}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *workspace) write(name, content string) {
	w.t.Helper()
	file := filepath.Join(w.Directory, name)
	check.OK(w.t, os.MkdirAll(filepath.Dir(file), 0o755))
	check.OK(w.t, os.WriteFile(file, []byte(content), 0o644))
}

// clone makes a repository with the files outside of the workspace, and clones it into the workspace.
func (w *workspace) clone(dir string, files map[string]string) (origin string) {
	w.t.Helper()
	origin = w.t.TempDir()
	w.git(relative(w, origin), "init", "-q")
	for name, content := range files {
		check.OK(w.t, os.WriteFile(filepath.Join(origin, name), []byte(content), 0o644))
	}
	w.git(relative(w, origin), "add", "-A")
	w.git(relative(w, origin), "commit", "-qm", "first")
	w.git(".", "clone", "-q", origin, dir)
	return origin
}

func relative(w *workspace, path string) string {
	w.t.Helper()
	below, err := filepath.Rel(w.Directory, path)
	check.OK(w.t, err)
	return below
}

func (w *workspace) changes() *changes.Changes {
	w.t.Helper()
	found, err := w.Changes(w.t.Context())
	check.OK(w.t, err)
	left, err := os.ReadDir(w.State)
	check.OK(w.t, err)
	check.Equal(w.t, "temporary files that are left", 0, len(left))
	return found
}

// only returns the one repository, which has no error.
func (w *workspace) only() changes.Repository {
	w.t.Helper()
	found := w.changes()
	if len(found.Repositories) != 1 || found.Repositories[0].Error != "" || len(found.Files) > 0 {
		w.t.Fatalf("got %+v", found)
	}
	return found.Repositories[0]
}

// line describes a file without its diff.
func line(f changes.File) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s +%d -%d %v %s", f.Status, f.OldPath, f.Path, f.Added, f.Removed,
		f.Binary, f.Note))
}

func lines(files []changes.File) (all []string) {
	for _, f := range files {
		all = append(all, line(f))
	}
	slices.Sort(all)
	return all
}

const long = "one\ntwo\nthree\nfour\nfive\nsix\n"

func TestPatchReproducesTheTree(t *testing.T) {
	w := newWorkspace(t)
	origin := w.clone("app", map[string]string{"edited": long, "moved": long + "seven\n", "gone": "x\n",
		"picture": "\x00\x01\x02", "mode": "#!\n", "l\xe4tin": "gr\xfc\xdf\n", "odd \"name\"\n": "a\n", "both": long,
		"linked": "text\n", ".gitignore": "ignored\n"})
	w.write("app/edited", strings.Replace(long, "two", "TWO", 1))
	w.git("app", "mv", "moved", "renamed")
	w.write("app/renamed", long+"7\n")
	check.OK(t, os.Remove(filepath.Join(w.Directory, "app/gone")))
	w.write("app/picture", "\x00\x01\x03")
	check.OK(t, os.Chmod(filepath.Join(w.Directory, "app/mode"), 0o755))
	w.write("app/l\xe4tin", "gr\xfcn\n")
	w.write("app/odd \"name\"\n", "b")
	w.write("app/both", "zero\n"+long)
	w.git("app", "commit", "-qam", "Change \"both\"")
	w.write("app/both", "zero\n"+long+"end\n")
	w.write("app/dir/new", "")
	w.write("app/new picture", "\x00")
	w.write("app/ignored", "x")
	w.write("app/looks like\ndiff --git a/x b/x", "diff --git a/x b/x\n")
	check.OK(t, os.Remove(filepath.Join(w.Directory, "app/linked")))
	check.OK(t, os.Symlink("/etc/passwd", filepath.Join(w.Directory, "app/linked")))

	got := w.only()
	check.Equal(t, "repository", []string{"app", "main", "origin/main"}, []string{got.Path, got.Branch, got.Upstream})
	check.Equal(t, "commits", []string{"Change \"both\""}, []string{got.Commits[0].Subject})
	check.Equal(t, "files", []string{
		"added  dir/new +0 -0 false", "added  looks like\ndiff --git a/x b/x +1 -0 false", "added  new picture +0 -0 true",
		"deleted  gone +0 -1 false", "modified  both +2 -0 false", "modified  edited +1 -1 false",
		"modified  linked +1 -1 false", "modified  l\xe4tin +1 -1 false", "modified  mode +0 -0 false",
		"modified  odd \"name\"\n +1 -1 false", "modified  picture +0 -0 true", "renamed moved renamed +1 -1 false",
	}, lines(got.Files))

	patch := filepath.Join(t.TempDir(), "patch")
	check.OK(t, os.WriteFile(patch, []byte(Patch(got)), 0o600))
	w.git(".", "clone", "-q", origin, "other")
	w.git("other", "apply", patch)
	w.git("other", "add", "-A")
	w.git("app", "add", "-A")
	check.Equal(t, "tree", w.git("app", "write-tree"), w.git("other", "write-tree"))
}

// Security (a hostile model): cannot run a command by files of a repository whose changes people read, such as its
// configuration: no filter, hook, external diff, signature check or file system monitor.
func TestRepositoryGetsNoCommandRun(t *testing.T) {
	w := newWorkspace(t)
	origin := w.clone("app", map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(w.Directory, "app/.git/evil")
	check.OK(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n"), 0o755))
	// A submodule that is looked for nowhere, and that git status would look into.
	w.git("app", "submodule", "--quiet", "add", origin, ".sub")
	w.git("app", "commit", "-qm", "Add a submodule")
	w.git("app", "push", "-q", "origin", "HEAD:more")
	w.git("app/.sub", "config", "filter.evil.clean", script)
	w.git("app/.sub", "config", "core.fsmonitor", script)
	w.write("app/.sub/.gitattributes", "* filter=evil\n")
	w.write("app/.sub/a.txt", "A\n")
	for _, key := range []string{"core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv",
		"filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "gpg.program", "core.pager", "core.sshCommand",
		"core.editor", "pager.diff", "alias.diff", "core.alternateRefsCommand", "remote.origin.uploadpack",
		"core.askPass", "credential.helper", "merge.evil.driver"} {
		w.git("app", "config", key, script)
	}
	w.git("app", "config", "filter.evil.required", "true")
	w.git("app", "config", "log.showSignature", "true")
	w.git("app", "config", "core.hooksPath", filepath.Dir(script))
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-commit"} {
		check.OK(t, os.Symlink(script, filepath.Join(filepath.Dir(script), hook)))
	}
	check.OK(t, os.WriteFile(filepath.Join(w.Directory, "app/.git/info/attributes"), []byte("* filter=evil diff=evil\n"),
		0o600))
	w.write("app/.gitattributes", "* filter=evil diff=evil merge=evil\n")
	w.write(".gitconfig", "[core]\n\tfsmonitor = "+script+"\n")
	w.write("app/a.txt", "A\n")
	w.write("app/c.txt", "c\n")

	got := w.only()
	check.Equal(t, "files", []string{"added  .gitattributes +1 -0 false", "added  c.txt +1 -0 false",
		"modified  a.txt +1 -1 false"}, lines(got.Files))
	if content, err := os.ReadFile(ran); err == nil {
		t.Errorf("commands ran: %s", content)
	}
	_ = exec.CommandContext(t.Context(), "git", "-C", filepath.Join(w.Directory, "app"), "diff").Run() // It may fail.
	if _, err := os.ReadFile(ran); err != nil {
		t.Errorf("git by itself runs none either: %v", err)
	}
}

// Security (a hostile model): cannot have objects fetched for a repository whose changes people read.
func TestMissingObjectsAreNotFetched(t *testing.T) {
	w := newWorkspace(t)
	origin := w.clone("unused", map[string]string{"a.txt": "a\n"})
	check.OK(t, os.RemoveAll(filepath.Join(w.Directory, "unused")))
	w.git(relative(w, origin), "config", "uploadpack.allowFilter", "true")
	w.git(".", "clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+origin, "app")
	w.write("app/a.txt", "A\n")
	before := w.git("app", "count-objects", "-v")
	if got := w.changes().Repositories[0]; got.Error == "" {
		t.Errorf("got %+v", got)
	}
	check.Equal(t, "objects", before, w.git("app", "count-objects", "-v"))
}

func TestBaseWithoutRemoteIsThatOfTheBinding(t *testing.T) {
	w := newWorkspace(t)
	commit := func(dir, at, file string) string {
		w.write(dir+"/"+file, file+"\n")
		w.git(dir, "add", "-A")
		t.Setenv("GIT_COMMITTER_DATE", at+" +0000")
		w.git(dir, "commit", "-qm", "Add "+file)
		return w.git(dir, "rev-parse", "HEAD")
	}
	for _, dir := range []string{"before", "after", "empty"} {
		check.OK(t, os.Mkdir(filepath.Join(w.Directory, dir), 0o755))
		w.git(dir, "init", "-q")
	}
	commit("before", "1600000000", "a")
	base := commit("before", "1600000001", "b")
	commit("before", "1700000001", "c")
	commit("after", "1700000001", "a")
	commit("after", "1700000002", "b")
	w.write("empty/a", "a\n")
	var got []string
	for _, r := range w.changes().Repositories {
		got = append(got, fmt.Sprint(r.Path, len(r.Commits), r.Base == base, r.Error, lines(r.Files)))
	}
	check.Equal(t, "repositories", []string{
		"after2 false[added  a +1 -0 false added  b +1 -0 false]", "before1 true[added  c +1 -0 false]",
		"empty0 false[added  a +1 -0 false]"}, got)
}

func TestMergedAndPushedCommitsAreNoChanges(t *testing.T) {
	w := newWorkspace(t)
	origin := relative(w, w.clone("app", map[string]string{"a": "a\n"}))
	w.write("app/mine", "x\n")
	w.git("app", "add", "-A")
	w.git("app", "commit", "-qm", "Mine")
	w.write(origin+"/theirs", "x\n")
	w.git(origin, "add", "-A")
	w.git(origin, "commit", "-qm", "Theirs")
	w.git("app", "pull", "-q", "--no-rebase", "--no-edit")
	got := w.only()
	check.Equal(t, "commits", 2, len(got.Commits))
	check.Equal(t, "files", []string{"added  mine +1 -0 false"}, lines(got.Files))
	w.git("app", "push", "-q", "origin", "HEAD:mine")
	got = w.only()
	check.Equal(t, "after the push", []int{0, 0}, []int{len(got.Commits), len(got.Files)})
}

func TestNestedRepositoriesAreSeparate(t *testing.T) {
	w := newWorkspace(t)
	library := w.clone("unused", map[string]string{"lib": "x\n"})
	check.OK(t, os.RemoveAll(filepath.Join(w.Directory, "unused")))
	w.clone("app", map[string]string{"a": "a\n", ".gitignore": "/cache\n"})
	w.git("app", "submodule", "--quiet", "add", library, "sub")
	w.git("app", "clone", "-q", library, "tool")
	w.git("app", "clone", "-q", library, "cache")
	w.write("app/sub/lib", "y\n")
	w.write("app/tool/lib", "z\n")
	var got []string
	for _, r := range w.changes().Repositories {
		got = append(got, fmt.Sprint(r.Path, r.Error, lines(r.Files)))
	}
	check.Equal(t, "repositories", []string{"app[added  .gitmodules +3 -0 false added  sub +1 -0 false]",
		"app/sub[modified  lib +1 -1 false]", "app/tool[modified  lib +1 -1 false]"}, got)
}

func TestUnusualRepositoriesAreExamined(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *workspace)
		want string
	}{
		"SHA-256": {func(w *workspace) {
			w.git(".", "init", "-q", "--object-format=sha256", "app")
			w.write("app/a", "a\n")
			w.git("app", "add", "-A")
			w.git("app", "commit", "-qm", "first")
			w.write("app/b", "b\n")
		}, "app main 1 [added  a +1 -0 false added  b +1 -0 false]"},
		"a linked worktree": {func(w *workspace) {
			origin := w.clone("app", map[string]string{"a": "a\n"})
			w.git("app", "worktree", "add", "-q", "-b", "topic", filepath.Join(w.Directory, "linked"))
			w.write("linked/a", "b\n")
			check.OK(w.t, os.RemoveAll(origin))
		}, "app main 0 [] linked topic 0 [modified  a +1 -1 false]"},
		"a conflict": {func(w *workspace) {
			w.clone("app", map[string]string{"a": "a\n"})
			w.git("app", "switch", "-qc", "side")
			w.write("app/a", "b\n")
			w.git("app", "commit", "-qam", "b")
			w.git("app", "switch", "-q", "main")
			w.write("app/a", "c\n")
			w.git("app", "commit", "-qam", "c")
			_ = exec.CommandContext(w.t.Context(), "git", "-C", filepath.Join(w.Directory, "app"), "merge", "side").Run()
		}, "app main 1 [modified  a +5 -1 false]"},
		"a detached HEAD": {func(w *workspace) {
			w.clone("app", map[string]string{"a": "a\n"})
			w.git("app", "checkout", "-q", "--detach")
			w.write("app/a", "b\n")
		}, "app  0 [modified  a +1 -1 false]"},
		"a split index": {func(w *workspace) {
			w.clone("app", map[string]string{"a": "a\n"})
			w.git("app", "update-index", "--split-index")
			w.write("app/b", "b\n")
		}, "app main 0 [added  b +1 -0 false]"},
		"a sparse checkout": {func(w *workspace) {
			w.clone("app", map[string]string{"a": "a\n", "b": "b\n"})
			w.git("app", "sparse-checkout", "set", "--no-cone", "/a")
			w.write("app/a", "A\n")
		}, "app main 0 [modified  a +1 -1 false]"},
		"one without a commit": {func(w *workspace) {
			w.git(".", "init", "-q", "app")
			w.write("app/a", "")
		}, "app main 0 [added  a +0 -0 false]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			c.make(w)
			var got []string
			for _, r := range w.changes().Repositories {
				got = append(got, fmt.Sprint(r.Path, " ", r.Branch, " ", len(r.Commits), " ", lines(r.Files))+r.Error)
			}
			check.Equal(t, "repositories", c.want, strings.Join(got, " "))
		})
	}
}

func TestUnreadableRepositoryHidesNoOthers(t *testing.T) {
	w := newWorkspace(t)
	w.clone("app", map[string]string{"a": "a\n"})
	w.write("app/a", "b\n")
	w.write("broken/.git/HEAD", "nonsense")
	w.write("elsewhere/.git", "gitdir: /nowhere\n")
	check.OK(t, os.MkdirAll(filepath.Join(w.Directory, "linked"), 0o755))
	check.OK(t, os.Symlink("../app/.git", filepath.Join(w.Directory, "linked/.git")))
	var got []string
	for _, r := range w.changes().Repositories {
		got = append(got, fmt.Sprintf("%s %t %d", r.Path, r.Error != "", len(r.Files)))
	}
	check.Equal(t, "repositories", []string{"app false 1", "broken true 0", "elsewhere true 0"}, got)
}

func TestAnswerIsBounded(t *testing.T) {
	w := newWorkspace(t)
	w.clone("app", map[string]string{"a": "a\n", "large": strings.Repeat("line\n", 300_000)})
	w.write("app/a", strings.Repeat("line\n", 100_000))
	w.write("app/b", strings.Repeat("x", maxDiff+1))
	w.write("app/large", strings.Repeat("line\n", 300_000)+"end\n")
	w.write("app/larger", strings.Repeat("line\n", 300_000))
	for i := range 20 {
		w.write(fmt.Sprintf("app/many/%d", i), strings.Repeat("x\n", 120_000)) // 351 KiB as a diff.
		w.write(fmt.Sprintf("app/many/1%d", i+1000), strings.Repeat("longer\n", 35_000))
	}
	for i := range 10_000 {
		w.write(fmt.Sprintf("app/more/%d", i), "x\n")
	}
	got := w.only()
	notes, size := map[string]int{}, 0
	for _, f := range got.Files {
		notes[f.Note]++
		size += len(f.Diff)
	}
	if len(got.Files) != maxFiles || got.Omitted != 10_000+44-maxFiles || size > maxDiffs || size < maxDiffs/2 {
		t.Errorf("%d files, %d omitted, %d bytes", len(got.Files), got.Omitted, size)
	}
	if notes["the file is larger than 1 MiB"] != 2 || notes["the diff is longer than 256 KiB"] == 0 ||
		notes["the diffs are longer than 4 MiB in all"] == 0 {
		t.Errorf("got %v", notes)
	}
	for _, f := range got.Files {
		if f.Path == "a" && (f.Added != 100_000 || len(f.Diff) > maxDiff || !strings.HasSuffix(f.Diff, "\n+line\n")) {
			t.Errorf("%s: %d bytes", line(f), len(f.Diff))
		}
	}
}

func TestFilesOutsideOfRepositoriesAreFound(t *testing.T) {
	w := newWorkspace(t)
	w.write("notes/plan \"ä\".md", "one\ntwo")
	w.write("empty", "")
	w.write("picture", "\x00")
	w.write("large", strings.Repeat("x", maxDiff+1))
	w.write(".cache/x", "x")
	w.write("node_modules/x/x", "x")
	check.OK(t, os.Symlink("/etc/passwd", filepath.Join(w.Directory, "link")))
	check.OK(t, os.Symlink("/etc", filepath.Join(w.Directory, "etc")))
	got := w.changes()
	check.Equal(t, "files", []string{"added  empty +0 -0 false", "added  large +0 -0 false the file is larger than 256 KiB",
		"added  notes/plan \"ä\".md +2 -0 false", "added  picture +0 -0 true the file is binary"}, lines(got.Files))
	w.git(".", "init", "-q", "other")
	patch := filepath.Join(t.TempDir(), "patch")
	check.OK(t, os.WriteFile(patch, []byte(Patch(changes.Repository{Files: got.Files})), 0o600))
	w.git("other", "apply", patch)
	copied, err := os.ReadFile(filepath.Join(w.Directory, "other/notes/plan \"ä\".md"))
	check.Equal(t, "content", "one\ntwo", string(copied))
	check.OK(t, err)

	w.Since = time.Now().Add(time.Hour)
	check.Equal(t, "files that are old", 0, len(w.changes().Files))
}

func TestWorkspaceWithoutGitListsItsFiles(t *testing.T) {
	w := newWorkspace(t)
	w.clone("app", map[string]string{"a": "a\n"})
	w.write("app/a", "b\n")
	t.Setenv("PATH", t.TempDir())
	got := w.changes()
	if len(got.Repositories) > 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "has no git") {
		t.Errorf("got %+v", got)
	}
	check.Equal(t, "files", []string{"added  app/a +1 -0 false"}, lines(got.Files))
}

// Security (a hostile model): cannot replace the git that finds changes by one in the workspace.
func TestGitInTheWorkspaceIsNotRun(t *testing.T) {
	w := newWorkspace(t)
	r := &review{Workspace: w.Workspace}
	t.Setenv("PATH", filepath.Join(w.Directory, "bin")+":bin::/usr/bin:"+w.Directory+"-more")
	check.Equal(t, "path", "PATH=/usr/bin:"+w.Directory+"-more", r.path())
}
