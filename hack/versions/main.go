// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command versions keeps the Go modules of the repository at one version of each dependency, so that a package that
// several of them import is compiled once.
//
//	go run ./hack/versions          lists dependencies with different versions, and fails if there are any
//	go run ./hack/versions -write   raises each to the highest version that a go.mod names, and tidies the modules
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// modules are the folders of the repository's modules.
var modules = []string{
	".", "test/archive", "test/signin", "test/gitops", "test/dashboards", "hack/localcluster",
	"hack/localcluster/binaries", "hack/localcluster/network", "hack/agent-sandbox", "hack/tools", "hack/release",
}

// exceptions are the dependencies of a module that need another version there.
var exceptions = map[string][]string{
	"test/gitops": {"k8s.io/kubectl"},         // Argo CD's engine is written for kubectl's packages of 1.36.
	"hack/tools":  {"github.com/gobwas/glob"}, // Linters are written for 0.2, Argo CD for 1.0.
}

func main() {
	write := flag.Bool("write", false, "raise the versions in place of listing the differences")
	flag.Parse()
	action := check
	if *write {
		action = raise
	}
	if err := action(context.Background(), ".", os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

// check fails if modules below root name different versions of a dependency or of the toolchain.
func check(_ context.Context, root string, _ io.Writer) error {
	files, err := parse(root)
	if err != nil {
		return err
	}
	problems := append(differences(files), toolchains(files)...)
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nrun \"make versions\", and commit the result", errors.Join(problems...))
}

// raise writes the highest version of each dependency into every go.mod that names it. That can raise what a module
// needs, so it repeats until nothing differs.
func raise(ctx context.Context, root string, progress io.Writer) error {
	for {
		files, err := parse(root)
		if err != nil {
			return err
		}
		if len(differences(files)) == 0 {
			return nil
		}
		for dir, file := range files {
			if err := raiseOne(ctx, root, dir, file, highest(files), progress); err != nil {
				return err
			}
		}
	}
}

// raiseOne writes the versions into the go.mod of one module, and tidies it.
func raiseOne(ctx context.Context, root, dir string, file *modfile.File, versions map[string]string,
	progress io.Writer) error {
	name := file.Module.Mod.Path
	for path := range dependencies(dir, file) {
		if err := setVersion(file, path, versions[path]); err != nil {
			return fmt.Errorf("raising %s of %s: %w", path, name, err)
		}
	}
	file.Cleanup()
	text, err := file.Format()
	if err != nil {
		return fmt.Errorf("formatting the go.mod of %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(root, dir, "go.mod"), text, 0o644); err != nil {
		return fmt.Errorf("writing the go.mod of %s: %w", name, err)
	}
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir, tidy.Stdout, tidy.Stderr = filepath.Join(root, dir), progress, progress
	if err := tidy.Run(); err != nil {
		return fmt.Errorf("tidying %s: %w", name, err)
	}
	return nil
}

// setVersion changes what the file requires, or what it replaces that with.
func setVersion(file *modfile.File, path, version string) error {
	for _, r := range file.Replace {
		if r.Old.Path == path {
			return file.AddReplace(path, r.Old.Version, r.New.Path, version)
		}
	}
	return file.AddRequire(path, version)
}

// parse reads the go.mod of every module below root, by its folder.
func parse(root string) (map[string]*modfile.File, error) {
	files := map[string]*modfile.File{}
	for _, dir := range modules {
		path := filepath.Join(root, dir, "go.mod")
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a module's requirements: %w", err)
		}
		if files[dir], err = modfile.Parse(path, text, nil); err != nil {
			return nil, fmt.Errorf("parsing a module's requirements: %w", err)
		}
	}
	return files, nil
}

// dependencies are the versions that the go.mod in dir selects: what it requires, with its replacements. It omits
// replacements by folders and the module's exceptions.
func dependencies(dir string, file *modfile.File) map[string]string {
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range file.Replace {
		if r.New.Version == "" {
			delete(versions, r.Old.Path)
		} else if versions[r.Old.Path] != "" {
			versions[r.Old.Path] = r.New.Version
		}
	}
	for _, path := range exceptions[dir] {
		delete(versions, path)
	}
	return versions
}

// highest is the highest version of each dependency that any of the files selects.
func highest(files map[string]*modfile.File) map[string]string {
	versions := map[string]string{}
	for dir, file := range files {
		for path, version := range dependencies(dir, file) {
			if versions[path] == "" || semver.Compare(version, versions[path]) > 0 {
				versions[path] = version
			}
		}
	}
	return versions
}

// differences has an error for each module that selects less than the highest version of a dependency.
func differences(files map[string]*modfile.File) (problems []error) {
	versions := highest(files)
	for dir, file := range files {
		for path, version := range dependencies(dir, file) {
			if version != versions[path] {
				problems = append(problems, fmt.Errorf("%s/go.mod has %s %s, another module has %s", dir, path, version,
					versions[path]))
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

// toolchains has an error for each module that names another toolchain than the product.
func toolchains(files map[string]*modfile.File) (problems []error) {
	want := files["."].Toolchain
	for dir, file := range files {
		if file.Toolchain == nil || want == nil || file.Toolchain.Name != want.Name {
			problems = append(problems, fmt.Errorf("%s/go.mod names another toolchain than go.mod", dir))
		}
	}
	return problems
}
