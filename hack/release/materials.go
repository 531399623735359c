// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// module is a Go module that is linked into programs, or a package of npm that the page serves.
type module struct {
	path, version string
	programs      []string
	isNPM         bool
	// licences are the texts of its licence files, by their names.
	licences map[string]string
}

// purl names a module for scanners: https://github.com/package-url/purl-spec.
func (m *module) purl() string {
	kind, path := "golang", m.path
	if m.isNPM {
		kind, path = "npm", strings.Replace(m.path, "@", "%40", 1) // as in @scope/name
	}
	return "pkg:" + kind + "/" + path + "@" + m.version
}

// writeMaterials writes what the programs consist of: sbom.cdx.json in CycloneDX's format, and THIRD_PARTY_LICENSES.
func (o *options) writeMaterials(ctx context.Context, b built) error {
	modules, err := linked(b)
	if err != nil {
		return err
	}
	page, err := o.pageModules()
	if err != nil {
		return err
	}
	if err := o.readLicences(ctx, modules); err != nil {
		return err
	}
	modules = append(modules, page...)
	if err := o.writeBOM(modules); err != nil {
		return err
	}
	return o.write("THIRD_PARTY_LICENSES", licencesOf(modules))
}

// standardLibrary is the name of Go's own packages in bills of materials.
const standardLibrary = "std"

// linked are the modules that the programs were linked from, as the programs themselves tell.
func linked(b built) ([]*module, error) {
	found := map[string]*module{}
	files := map[string]string{}
	for _, program := range programs {
		files[program] = b.path("linux/amd64", program)
	}
	for _, platform := range platforms {
		files["kubectl-chat for "+platform] = b.path(platform, "kubectl-chat")
	}
	for _, program := range slices.Sorted(maps.Keys(files)) {
		info, err := buildinfo.ReadFile(files[program])
		if err != nil {
			return nil, fmt.Errorf("reading the modules of %s: %w", program, err)
		}
		for _, dependency := range info.Deps {
			if dependency.Replace != nil {
				dependency = dependency.Replace
			}
			key := dependency.Path + "@" + dependency.Version
			if found[key] == nil {
				found[key] = &module{path: dependency.Path, version: dependency.Version}
			}
			found[key].programs = append(found[key].programs, program)
		}
	}
	found[standardLibrary] = &module{path: standardLibrary, version: strings.TrimPrefix(runtime.Version(), "go"),
		programs: []string{"all"}}
	modules := slices.Collect(maps.Values(found))
	slices.SortFunc(modules, func(a, b *module) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.version, b.version))
	})
	return modules, nil
}

// vendored are the lines of hack/vendor-page.sh with what it takes: the package, its version, and the name of its file.
var vendored = regexp.MustCompile(`(?m)^  vendor (\S+) (\S+) \S+ ([a-z-]+)\.\S+$`)

// pageModules are what the page takes from npm.
func (o *options) pageModules() ([]*module, error) {
	script, err := os.ReadFile(filepath.Join(o.root, "hack", "vendor-page.sh"))
	if err != nil {
		return nil, err
	}
	var modules []*module
	for _, line := range vendored.FindAllSubmatch(script, -1) {
		licence, err := os.ReadFile(filepath.Join(o.root, "internal", "gateway", "page", "ui", "vendor",
			string(line[3])+".LICENSE"))
		if err != nil {
			return nil, err
		}
		modules = append(modules, &module{path: string(line[1]), version: string(line[2]), isNPM: true,
			programs: []string{"gateway", "kubectl-chat"}, licences: map[string]string{"LICENSE": string(licence)}})
	}
	if len(modules) == 0 {
		return nil, errors.New("hack/vendor-page.sh names no packages")
	}
	return modules, nil
}

// licenceFile matches the names of files with licences and notices.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([._-].*)?$`)

// readLicences reads the licence files of modules from Go's module cache. A module without one is an error: no one may
// distribute it.
func (o *options) readLicences(ctx context.Context, modules []*module) error {
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		if m.path != standardLibrary {
			args = append(args, m.path+"@"+m.version)
		}
	}
	download := exec.CommandContext(ctx, "go", args...)
	download.Dir, download.Stderr = o.root, os.Stderr
	listed, err := download.Output()
	if err != nil {
		return fmt.Errorf("finding the modules: %w", err)
	}
	dirs := map[string]string{standardLibrary + "@" + strings.TrimPrefix(runtime.Version(), "go"): goRoot(ctx)}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); decoder.More(); {
		var found struct{ Path, Version, Dir string }
		if err := decoder.Decode(&found); err != nil {
			return fmt.Errorf("decoding what go mod download prints: %w", err)
		}
		dirs[found.Path+"@"+found.Version] = found.Dir
	}
	var missing []error
	for _, m := range modules {
		m.licences, err = licencesIn(dirs[m.path+"@"+m.version])
		if err != nil {
			return err
		}
		if len(m.licences) == 0 {
			missing = append(missing, fmt.Errorf("module %s@%s has no licence file", m.path, m.version))
		}
	}
	return errors.Join(missing...)
}

// goRoot is the folder of Go itself, whose packages are in every program.
func goRoot(ctx context.Context) string {
	root, _ := exec.CommandContext(ctx, "go", "env", "GOROOT").Output() // A missing folder is an error later.
	return strings.TrimSpace(string(root))
}

// licencesIn are the licence files at the top of a folder.
func licencesIn(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading a module: %w", err)
	}
	texts := map[string]string{}
	for _, entry := range entries {
		if entry.Type()&fs.ModeType != 0 || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts[entry.Name()] = string(text)
	}
	return texts, nil
}

// licencesOf is one text with all licences. Modules with the same text share it.
func licencesOf(modules []*module) []byte {
	names := map[string][]string{}
	for _, m := range modules {
		for _, file := range slices.Sorted(maps.Keys(m.licences)) {
			text := strings.TrimSpace(m.licences[file])
			names[text] = append(names[text], m.path+" "+m.version)
		}
	}
	texts := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(strings.Compare(names[a][0], names[b][0]), strings.Compare(a, b))
	})
	var all bytes.Buffer
	all.WriteString("Parley's programs contain the software below, under its licences.\n")
	for _, text := range texts {
		fmt.Fprintf(&all, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), strings.Join(names[text], "\n"), text)
	}
	return all.Bytes()
}

// writeBOM writes the bill of materials.
func (o *options) writeBOM(modules []*module) error {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{Type: cdx.ComponentTypeApplication, Name: "parley",
		Version: o.version, BOMRef: "parley", PackageURL: "pkg:golang/parley.dev/parley@" + o.version,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}}}
	components := make([]cdx.Component, 0, len(modules))
	refs := make([]string, 0, len(modules))
	for _, m := range modules {
		properties := make([]cdx.Property, 0, len(m.programs))
		for _, program := range m.programs {
			properties = append(properties, cdx.Property{Name: "parley:program", Value: program})
		}
		components = append(components, cdx.Component{Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version,
			BOMRef: m.purl(), PackageURL: m.purl(), Properties: &properties})
		refs = append(refs, m.purl())
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: "parley", Dependencies: &refs}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("encoding the bill of materials: %w", err)
	}
	return o.write("sbom.cdx.json", text.Bytes())
}
