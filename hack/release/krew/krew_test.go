// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package krew

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// platforms are some of a release.
var platforms = []string{"linux/amd64", "darwin/arm64", "windows/amd64"}

// programs are files that stand for what the Makefile builds.
func programs(t *testing.T) (given []string) {
	t.Helper()
	for _, platform := range platforms {
		name := "kubectl-chat"
		if strings.HasPrefix(platform, "windows/") {
			name += ".exe"
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte("program of "+platform), 0o600); err != nil {
			t.Fatal(err)
		}
		given = append(given, platform+"="+file)
	}
	return given
}

func TestKrewAcceptsTheManifest(t *testing.T) {
	p := Packing{Version: "v0.1.0", URL: "https://releases.example/v0.1.0/", License: "../../../LICENSE", Out: t.TempDir()}
	given := programs(t)
	if err := p.Pack(given); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(p.Out, "chat.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(raw, &m); err != nil {
		t.Fatal(err)
	}
	valid(t, &m)
	var served []string
	for i, target := range m.Spec.Platforms {
		served = append(served, target.Selector.MatchLabels["os"]+"/"+target.Selector.MatchLabels["arch"])
		archive := filepath.Join(p.Out, strings.TrimPrefix(target.URI, p.URL))
		packed, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != target.SHA256 {
			t.Errorf("the archive of %s is another one", served[i])
		}
		want := map[string]string{target.Bin: "program of " + served[i]}
		if diff := cmp.Diff(want, executables(t, archive)); diff != "" {
			t.Errorf("the archive of %s (-want +got):\n%s", served[i], diff)
		}
	}
	if diff := cmp.Diff(platforms, served); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	again := p
	again.Out = t.TempDir()
	if err := again.Pack(given); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(filepath.Join(again.Out, "chat.yaml")); err != nil || string(second) != string(raw) {
		t.Errorf("the same programs make another release: %v", err)
	}
}

// valid holds a manifest to what krew checks before it installs a plug-in.
func valid(t *testing.T, m *manifest) {
	t.Helper()
	s := &m.Spec
	for what, holds := range map[string]bool{
		"apiVersion":       m.APIVersion == "krew.googlecontainertools.github.com/v1alpha2",
		"kind":             m.Kind == "Plugin",
		"name":             regexp.MustCompile(`^[\w-]+$`).MatchString(m.Metadata.Name),
		"version":          semver.MatchString(s.Version),
		"shortDescription": regexp.MustCompile(`^.{1,50}$`).MatchString(s.ShortDescription),
		"platforms":        len(s.Platforms) > 0,
	} {
		if !holds {
			t.Errorf("the manifest's %s is not as krew wants it", what)
		}
	}
	for _, target := range s.Platforms {
		if !strings.HasPrefix(target.URI, "https://") || !strings.HasSuffix(target.URI, ".tar.gz") || target.Bin == "" ||
			!regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(target.SHA256) || len(target.Selector.MatchLabels) != 2 {
			t.Errorf("a platform is not as krew wants it: %+v", target)
		}
	}
}

// executables are the contents of the programs in an archive, by their names. Krew wants the licence in it.
func executables(t *testing.T, archive string) map[string]string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	found, licensed := map[string]string{}, false
	for packed := tar.NewReader(unzipped); ; {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(io.LimitReader(packed, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		licensed = licensed || header.Name == "LICENSE"
		if header.Mode&0o111 != 0 {
			found[header.Name] = string(raw)
		}
	}
	if !licensed {
		t.Error("the licence is missing")
	}
	return found
}

func TestInvalidReleaseIsRejected(t *testing.T) {
	for want, p := range map[string]Packing{
		"set VERSION":         {Version: "0.1.0", URL: "https://releases.example"},
		"set DOWNLOADS":       {Version: "v0.1.0", URL: "http://releases.example"},
		"there is no program": {Version: "v0.1.0", URL: "https://releases.example"},
	} {
		if err := p.Pack(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
