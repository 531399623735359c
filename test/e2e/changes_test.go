// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// makesRepository has a model commit a file, which it changes then.
const makesRepository = `set -e; git --version; mkdir app; cd app; git init -q; echo one > a.txt; git add -A
git -c user.name=m -c user.email=m@example.com commit -qm 'Add a'`

func TestPeopleSeeWhatAModelChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(
		callOf("execute", map[string]any{"command": makesRepository}),
		callOf("write_file", map[string]any{"path": "app/a.txt", "content": "one\ntwo\n"}),
		callOf("write_file", map[string]any{"path": "note.txt", "content": "hello\n"}),
	))
	w.template("shell")
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Change it.",
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}}})
	w.ready("c", 8)
	made := w.results("c")[0].Output
	if strings.Contains(made, "git: not found") {
		t.Skip("the image of the workspace has no git")
	}
	check.Contains(t, made, `"exit_code":0`)
	w.shows("Add a\n", "diff", "c")
	w.shows("\n+one\n+two\n", "diff", "c", "app")
	check.Equal(t, "names", "app/a.txt\nnote.txt\n", w.ends(0, "diff", "c", "--name-only"))

	dir := t.TempDir()
	patch := filepath.Join(dir, "patch")
	check.OK(t, os.WriteFile(patch, []byte(w.ends(0, "diff", "c", "--patch")), 0o600))
	apply := exec.CommandContext(t.Context(), "git", "apply", patch)
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+dir)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	check.OK(t, err)
	check.Equal(t, "content", "one\ntwo\n", string(content))

	w.ends(0, "cp", "c:app", dir)
	copied := filepath.Join(dir, "app/a.txt")
	content, err = os.ReadFile(copied)
	check.OK(t, err)
	check.Equal(t, "copied content", "one\ntwo\n", string(content))
	const forbidden = 4 // A chat user could change what a call runs after its approval.
	w.ends(forbidden, "cp", copied, "c:app/b.txt")
	w.create(&rbacv1.RoleBinding{ObjectMeta: w.meta("admin"),
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "person", Namespace: w.ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parley-chat-admin"}})
	w.eventually("an admin copies a file to the workspace", func() bool {
		return w.plugin("cp", copied, "c:app/b.txt").Run() == nil
	})
	check.Equal(t, "names after a copy", "app/a.txt\napp/b.txt\nnote.txt\n", w.ends(0, "diff", "c", "--name-only"))

	w.patch(w.workspace("c"), `{"spec": {"suspend": true}}`)
	w.eventually("a stopped workspace is explained", func() bool {
		out, err := w.plugin("diff", "c").CombinedOutput()
		return err != nil && strings.Contains(string(out), "workspace c is not running")
	})
}
