// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const goMod = "module example.com/m\ngo 1.27.0\ntoolchain go1.27.4\n"

// repository writes a go.mod for each module; the given ones differ from goMod.
func repository(t *testing.T, different map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range modules {
		text := goMod
		if d, ok := different[dir]; ok {
			text = d
		}
		path := filepath.Join(root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		dirs map[string]string
		want string
	}{
		"equal versions": {map[string]string{
			".":           goMod + "require example.com/a v1.2.0\n",
			"test/gitops": goMod + "require example.com/a v1.2.0\n",
		}, ""},
		"lower version": {map[string]string{
			".":           goMod + "require example.com/a v1.2.0\n",
			"test/gitops": goMod + "require example.com/a v1.10.0\n",
		}, "./go.mod has example.com/a v1.2.0, another module has v1.10.0"},
		"replacement counts": {map[string]string{
			".":          goMod + "require example.com/a v1.2.0\n",
			"hack/tools": goMod + "require example.com/a v0.0.0\nreplace example.com/a => example.com/a v1.1.0\n",
		}, "hack/tools/go.mod has example.com/a v1.1.0, another module has v1.2.0"},
		"folder in place of module": {map[string]string{
			".":          goMod + "require example.com/a v1.2.0\n",
			"hack/tools": goMod + "require example.com/a v0.0.0\nreplace example.com/a => ../..\n",
		}, ""},
		"exception": {map[string]string{
			".":           goMod + "require k8s.io/kubectl v0.37.2\n",
			"test/gitops": goMod + "require k8s.io/kubectl v0.36.1\n",
		}, ""},
		"other toolchain": {map[string]string{
			"hack/tools": strings.Replace(goMod, "1.27.4", "1.27.3", 1),
		}, "hack/tools/go.mod names another toolchain"},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(context.Background(), repository(t, c.dirs), io.Discard)
			if c.want == "" && err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got error %v, want %q", err, c.want)
			}
		})
	}
}

func TestHighestComparesSemantically(t *testing.T) {
	root := repository(t, map[string]string{
		".":           goMod + "require example.com/a v1.36.12\n",
		"test/gitops": goMod + "require example.com/a v1.36.12-0.20260120151049-f2248ac996af\n",
	})
	files, err := parse(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := highest(files), map[string]string{"example.com/a": "v1.36.12"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestModulesListsEveryModule(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, pattern := range []string{"go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			isOurs := !strings.Contains(dir, "node_modules") && !strings.HasPrefix(dir, ".parley")
			if isOurs && !slices.Contains(modules, dir) {
				t.Errorf("module %s is missing in the list of modules", dir)
			}
		}
	}
}
