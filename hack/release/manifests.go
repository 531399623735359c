// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// installation is the kustomization of install.yaml: config/default with the image of the release.
const installation = `
resources: [%s]
images:
- {name: parley.dev/parley, newName: %s/%s, newTag: %s, digest: "%s"}
# Generation pods run the manager's image.
replacements:
- source: {kind: Deployment, name: parley-manager, fieldPath: "spec.template.spec.containers.[name=manager].image"}
  targets:
  - select: {kind: Deployment, name: parley-manager}
    fieldPaths: ["spec.template.spec.containers.[name=manager].env.[name=PARLEY_IMAGE].value"]
`

// writeManifests writes install.yaml, and stamp.yaml for clusters from Kubernetes 1.36 on.
func (o *options) writeManifests(i image) error {
	overlay, err := os.MkdirTemp(o.root, ".release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(overlay) }()
	text := fmt.Sprintf(installation, "../config/default", i.registry, imageName, i.tag, i.digest)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	for name, dir := range map[string]string{"install.yaml": overlay, "stamp.yaml": o.config("admission", "stamp")} {
		objects, err := kustomize(dir)
		if err != nil {
			return err
		}
		if err := o.write(name, objects); err != nil {
			return err
		}
	}
	return nil
}

// config is the path of something in config/.
func (o *options) config(path ...string) string {
	return filepath.Join(append([]string{o.root, "config"}, path...)...)
}

// kustomize builds a kustomization.
func kustomize(dir string) ([]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	return built.AsYaml()
}

// writeNotes writes the section of the version in CHANGELOG.md.
func (o *options) writeNotes() error {
	changelog, err := os.ReadFile(filepath.Join(o.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	_, section, found := bytes.Cut(changelog, []byte("\n## "+o.version+"\n"))
	if !found {
		return fmt.Errorf("CHANGELOG.md has no section %q: write it before the release", "## "+o.version)
	}
	section, _, _ = bytes.Cut(section, []byte("\n## "))
	return o.write("RELEASE_NOTES.md", []byte("# Parley "+o.version+"\n\n"+strings.TrimSpace(string(section))+"\n"))
}
