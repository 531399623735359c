// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sources writes a small tree: an executable, a plain file and a directory.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"prog": 0o700, "tree/b.txt": 0o600, "tree/a/deep.txt": 0o644} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("content of "+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func spec(dir string) Spec {
	return Spec{
		Ref: "localhost/parley:dev", Arch: "amd64", User: "65532:65532", Entrypoint: []string{"/bin/prog", "serve"},
		Files: []File{{filepath.Join(dir, "prog"), "/bin/prog"}, {filepath.Join(dir, "tree"), "/etc/tree"}},
	}
}

func entries(t *testing.T, r io.Reader) (names []string, bodies map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	bodies, headers = map[string][]byte{}, map[string]*tar.Header{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return names, bodies, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		bodies[h.Name], headers[h.Name] = b, h
	}
}

func TestImageBytesIgnoreFileTimesAndModes(t *testing.T) {
	dir := sources(t)
	var first, second bytes.Buffer
	if _, err := Write(&first, spec(dir)); err != nil {
		t.Fatal(err)
	}
	prog := filepath.Join(dir, "prog")
	if err := os.Chtimes(prog, time.Unix(1, 0), time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(prog, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(&second, spec(dir)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatal("two packings of the same content differ")
	}
}

func TestBlobDigestsMatchAndReferencesResolve(t *testing.T) {
	var out bytes.Buffer
	digest, err := Write(&out, spec(sources(t)))
	if err != nil {
		t.Fatal(err)
	}
	_, bodies, _ := entries(t, &out)
	for name, body := range bodies {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && sum != fmt.Sprintf("%x", sha256.Sum256(body)) {
			t.Errorf("blob %s does not hold what its name says", name)
		}
	}
	var index struct{ Manifests []descriptor }
	decode(t, bodies["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Digest != digest {
		t.Fatalf("index names %+v, want only %s", index.Manifests, digest)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, bodies[index.Manifests[0].blobPath()], &manifest)
	var config struct {
		Config struct {
			User       string
			Entrypoint []string
		}
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	decode(t, bodies[manifest.Config.blobPath()], &config)
	if got := config.Rootfs.DiffIDs; len(got) != 1 || got[0] != manifest.Layers[0].Digest {
		t.Errorf("diff_ids %v, want the layer %s", got, manifest.Layers[0].Digest)
	}
	if config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/bin/prog serve" {
		t.Errorf("run configuration is %+v", config.Config)
	}
	var docker []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	decode(t, bodies["manifest.json"], &docker)
	if bodies[docker[0].Config] == nil || bodies[docker[0].Layers[0]] == nil ||
		docker[0].RepoTags[0] != "localhost/parley:dev" {
		t.Errorf("docker manifest does not resolve: %+v", docker)
	}
}

func TestLayerListsParentsFirstWithNormalizedModes(t *testing.T) {
	var layer bytes.Buffer
	if err := writeLayer(&layer, spec(sources(t)).Files); err != nil {
		t.Fatal(err)
	}
	names, bodies, headers := entries(t, &layer)
	want := "bin/ bin/prog etc/ etc/tree/ etc/tree/a/ etc/tree/a/deep.txt etc/tree/b.txt"
	if got := strings.Join(names, " "); got != want {
		t.Fatalf("layer holds %s\nwant %s", got, want)
	}
	if string(bodies["etc/tree/b.txt"]) != "content of tree/b.txt" {
		t.Errorf("etc/tree/b.txt holds %q", bodies["etc/tree/b.txt"])
	}
	for name, mode := range map[string]int64{"bin/": 0o755, "bin/prog": 0o755, "etc/tree/b.txt": 0o644} {
		if headers[name].Mode != mode {
			t.Errorf("%s has mode %o, want %o", name, headers[name].Mode, mode)
		}
	}
}

func TestWhatCannotBeAnImageIsRefused(t *testing.T) {
	dir := sources(t)
	for name, tc := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"a reference without a tag":    {func(s *Spec) { s.Ref = "localhost/parley" }, "want registry/name:tag"},
		"a port is not a tag":          {func(s *Spec) { s.Ref = "localhost:5000/parley" }, "want registry/name:tag"},
		"no files":                     {func(s *Spec) { s.Files = nil }, "at least one file"},
		"no architecture":              {func(s *Spec) { s.Arch = "" }, "architecture"},
		"a source that is not there":   {func(s *Spec) { s.Files[0].Source += "-missing" }, "prog-missing"},
		"the same path from two files": {func(s *Spec) { s.Files = append(s.Files, s.Files[0]) }, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(dir)
			tc.change(&s)
			if _, err := Write(io.Discard, s); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error is %v, want it to say %q", err, tc.want)
			}
		})
	}
}

func TestFileArgumentRequiresSourceAndAbsoluteTarget(t *testing.T) {
	if f, err := ParseFile("bin/x=/x"); err != nil || f != (File{"bin/x", "/x"}) {
		t.Errorf("got %+v, %v", f, err)
	}
	for _, bad := range []string{"bin/x", "=/x", "bin/x=", "bin/x=x"} {
		if f, err := ParseFile(bad); err == nil {
			t.Errorf("%q was accepted as %+v", bad, f)
		}
	}
}

func decode(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%v in %q", err, b)
	}
}
