// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// finished is set by "make release-check".
var finished = flag.String("release", "", "folder of a finished release to check")

// emulators run the programs of other architectures. Debian's package qemu-user-static has them.
var emulators = map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}

// finishedRelease returns the options and the image of the release in the folder.
func finishedRelease(t *testing.T) (options, image) {
	t.Helper()
	if *finished == "" {
		t.Skip("no -release: run \"make release-check VERSION=...\"")
	}
	text := strings.TrimSpace(string(readFile(t, *finished, "images.txt")))
	tagged, digest, _ := strings.Cut(text, "@")
	repository, tag, _ := strings.Cut(tagged, ":v")
	i := image{strings.TrimSuffix(repository, "/"+imageName), "v" + tag, digest}
	if i.reference() != text {
		t.Fatalf("images.txt does not name an image of a release: %s", text)
	}
	return options{root: root, out: *finished, version: i.tag, registry: i.registry}, i
}

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// releasedImage returns the only image of the layout.
func releasedImage(t *testing.T) (v1.Hash, v1.ImageIndex) {
	t.Helper()
	top, err := layout.ImageIndexFromPath(filepath.Join(*finished, "images", imageName))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d images in place of one", len(manifest.Manifests))
	}
	digest := manifest.Manifests[0].Digest
	index, err := top.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	return digest, index
}

// releasedPrograms unpacks the programs of the release, by platform, into a folder of the test.
func releasedPrograms(t *testing.T, o options) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	_, index := releasedImage(t)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		content := mutate.Extract(one)
		files[m.Platform.String()] = unpack(t, content)
		content.Close()
	}
	for _, platform := range platforms {
		archive := fmt.Sprintf("kubectl-chat-%s-%s.tar.gz", o.version, strings.ReplaceAll(platform, "/", "-"))
		unzipped, err := gzip.NewReader(bytes.NewReader(readFile(t, o.out, archive)))
		if err != nil {
			t.Fatal(err)
		}
		files[platform] = append(files[platform], unpack(t, unzipped)...)
	}
	return files
}

// unpack writes the programs of a tar into a folder of the test, and returns their paths.
func unpack(t *testing.T, from io.Reader) (files []string) {
	t.Helper()
	dir := t.TempDir()
	for packed := tar.NewReader(from); ; {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode&0o111 == 0 {
			continue
		}
		content, err := io.ReadAll(packed)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, header.Name)
		if err := os.WriteFile(file, content, 0o700); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
}

func TestReleaseProgramsPrintTheirVersion(t *testing.T) {
	o, _ := finishedRelease(t)
	files := releasedPrograms(t, o)
	for _, arch := range architectures {
		platform := "linux/" + arch
		var found []string
		for _, file := range files[platform] {
			program := filepath.Base(file)
			found = append(found, program)
			command := []string{emulators[arch], file, "--version"}
			if arch == runtime.GOARCH {
				command = command[1:]
			}
			if program == "kubectl-chat" {
				command[len(command)-1] = "version"
			}
			printed, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
			if err != nil || !bytes.Contains(printed, []byte(o.version)) || !bytes.Contains(printed, []byte(platform)) {
				t.Errorf("%s printed %q, %v: want %s and %s", strings.Join(command, " "), printed, err, o.version, platform)
			}
		}
		if diff := cmp.Diff(append(slices.Clone(programs), "kubectl-chat"), found); diff != "" {
			t.Errorf("programs for %s (-want +got):\n%s", platform, diff)
		}
	}
}

// verify runs a command of docs/how-to/installing.md in the folder of a release.
func verify(t *testing.T, dir, command string) {
	t.Helper()
	if !bytes.Contains(readFile(t, root, "docs", "how-to", "installing.md"), []byte("\n    "+command+"\n")) {
		t.Errorf("docs/how-to/installing.md does not have the command %s", command)
	}
	check := exec.CommandContext(t.Context(), "bash", "-c", command)
	check.Dir = dir
	if output, err := check.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, output)
	}
}

const (
	verifyChecksums = "sha256sum --check --strict SHA256SUMS"
	verifySignature = "openssl dgst -sha256 -verify parley.pub -signature <(base64 -d SHA256SUMS.sig) SHA256SUMS"
)

func TestReleaseFilesHaveTheirChecksums(t *testing.T) {
	o, _ := finishedRelease(t)
	verify(t, o.out, verifyChecksums)
	sums := string(readFile(t, o.out, checksums))
	err := filepath.WalkDir(o.out, func(path string, entry os.DirEntry, err error) error {
		file, _ := filepath.Rel(o.out, path)
		signature := file == checksums || file == checksums+".sig" || file == "parley.pub"
		if err == nil && !entry.IsDir() && !signature && !strings.Contains(sums, "  "+file+"\n") {
			t.Errorf("%s has no line for %s", checksums, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReleaseHasValidSignature(t *testing.T) {
	o, _ := finishedRelease(t)
	if _, err := os.Stat(filepath.Join(o.out, "parley.pub")); err != nil {
		t.Skip("the release is not signed: \"make release\" had no KEY")
	}
	verify(t, o.out, verifySignature)
}

func TestOpenSSLVerifiesTheSignature(t *testing.T) {
	for _, arguments := range []string{"ecparam -genkey -name prime256v1", "ecparam -genkey -name prime256v1 -noout",
		"genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"} {
		t.Run(arguments, func(t *testing.T) {
			o := options{out: t.TempDir(), key: filepath.Join(t.TempDir(), "key.pem")}
			generate := exec.CommandContext(t.Context(), "openssl", append(strings.Fields(arguments), "-out", o.key)...)
			if output, err := generate.CombinedOutput(); err != nil {
				t.Fatalf("generating a key: %v\n%s", err, output)
			}
			if err := errors.Join(o.write("install.yaml", []byte("text")), o.writeChecksums()); err != nil {
				t.Fatal(err)
			}
			verify(t, o.out, verifyChecksums)
			verify(t, o.out, verifySignature)
		})
	}
}

func TestReleaseNamesOneImage(t *testing.T) {
	o, i := finishedRelease(t)
	digest, _ := releasedImage(t)
	if digest.String() != i.digest {
		t.Errorf("images.txt names %s, and the layout has %s", i.digest, digest)
	}
	if got := bytes.Count(readFile(t, o.out, "install.yaml"), []byte(i.reference())); got != 3 {
		t.Errorf("install.yaml names %s %d times in place of 3", i.reference(), got)
	}
	c, err := loader.Load(filepath.Join(o.out, "parley-"+strings.TrimPrefix(o.version, "v")+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := renderChart(c, "", "parley-system")
	if err != nil {
		t.Fatal(err)
	}
	for path, object := range map[string]string{container + "image": gatewayKey, container + "env.0.value": managerKey} {
		if diff := cmp.Diff(i.reference(), at(all[object], path)); diff != "" {
			t.Errorf("the chart's image in %s at %s (-want +got):\n%s", object, path, diff)
		}
	}
}

func TestReleaseListsEveryModule(t *testing.T) {
	o, _ := finishedRelease(t)
	var bom cdx.BOM
	text := readFile(t, o.out, "sbom.cdx.json")
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cdx.SpecVersion1_6 && bom.SpecVersion != cdx.SpecVersion1_7 || bom.Components == nil {
		t.Fatalf("sbom.cdx.json has version %s of CycloneDX, or no components", bom.SpecVersion)
	}
	listed := map[string]bool{}
	for _, component := range *bom.Components {
		listed[component.Name+" "+component.Version] = true
	}
	licensed := licensedModules(string(readFile(t, o.out, "THIRD_PARTY_LICENSES")))
	if diff := cmp.Diff(listed, licensed); diff != "" {
		t.Errorf("modules of sbom.cdx.json (-) and THIRD_PARTY_LICENSES (+):\n%s", diff)
	}
	for platform, files := range releasedPrograms(t, o) {
		for _, file := range files {
			info, err := buildinfo.ReadFile(file)
			if err != nil {
				t.Fatalf("reading the modules of %s for %s: %v", filepath.Base(file), platform, err)
			}
			for _, m := range info.Deps {
				if !listed[m.Path+" "+m.Version] {
					t.Errorf("sbom.cdx.json does not have %s %s of %s for %s", m.Path, m.Version, filepath.Base(file), platform)
				}
			}
		}
	}
}

// licensedModules are the modules that have a text in THIRD_PARTY_LICENSES.
func licensedModules(text string) map[string]bool {
	found := map[string]bool{}
	for _, section := range strings.Split(text, "\n"+strings.Repeat("=", 78)+"\n")[1:] {
		modules, licence, _ := strings.Cut(section, "\n\n")
		if len(strings.TrimSpace(licence)) < 100 {
			continue
		}
		for module := range strings.SplitSeq(modules, "\n") {
			found[module] = true
		}
	}
	return found
}

func TestReleaseIsReproducible(t *testing.T) {
	o, _ := finishedRelease(t)
	want := string(readFile(t, o.out, checksums))
	o.out = t.TempDir()
	if manifest, err := os.ReadFile(filepath.Join(*finished, "chat.yaml")); err == nil {
		_, url, _ := strings.Cut(string(manifest), "uri: ")
		o.downloads, _, _ = strings.Cut(url, "/kubectl-chat-")
	}
	if err := o.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(readFile(t, o.out, checksums))); diff != "" {
		t.Errorf("the same sources make another release (-want +got):\n%s", diff)
	}
}

func TestReleasePushKeepsTheDigest(t *testing.T) {
	o, i := finishedRelease(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/" + imageName
	if err := pushLayout(t.Context(), filepath.Join(o.out, "images", imageName), reference+":"+i.tag, true); err != nil {
		t.Fatal(err)
	}
	pushed, err := name.ParseReference(reference+"@"+i.digest, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range architectures {
		one, err := remote.Image(pushed, remote.WithContext(t.Context()),
			remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatalf("pulling the image for %s: %v", arch, err)
		}
		if config, err := one.ConfigFile(); err != nil || config.Architecture != arch || config.Config.User != imageUser {
			t.Errorf("the configuration of the image for %s is %+v, %v", arch, config, err)
		}
	}
}
