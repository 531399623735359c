// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image packs local files into a container image without a container engine.
//
// The result is one tar that is both an OCI image layout and a "docker save" archive, so containerd, kind,
// podman and docker load it. Equal inputs give equal bytes: no clock, no user names, sorted directories,
// permissions reduced to "executable or not".
package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Spec says what goes into an image.
type Spec struct {
	// Ref is the full reference the image is loaded under, with a tag: registry/path:tag. Required.
	Ref string
	// Files are the contents, in this order. At least one.
	Files []File
	// Entrypoint is the command. Empty: the pod has to name one.
	Entrypoint []string
	// Env holds NAME=value pairs. Empty: PATH=/.
	Env []string
	// User is a numeric uid or uid:gid, as Pod Security's runAsNonRoot wants. Empty: root.
	User string
	// WorkingDir is where the command starts. Empty: /.
	WorkingDir string
	// Arch is a Go architecture name, which is what OCI uses as well. Required.
	Arch string
}

// File is one file or directory tree to put into the image.
type File struct {
	// Source is a path on this machine. A directory is taken with everything below it.
	Source string
	// Target is the absolute path inside the image.
	Target string
}

// ParseFile reads SRC=DST.
func ParseFile(arg string) (File, error) {
	src, dst, ok := strings.Cut(arg, "=")
	if !ok || src == "" || !strings.HasPrefix(dst, "/") {
		return File{}, fmt.Errorf("want SRC=/DST, got %q", arg)
	}
	return File{Source: src, Target: dst}, nil
}

func (s Spec) validate() error {
	name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	switch {
	case !strings.Contains(s.Ref, "/") || !strings.Contains(name, ":"):
		return fmt.Errorf("image reference %q: want registry/name:tag", s.Ref)
	case len(s.Files) == 0:
		return errors.New("an image needs at least one file")
	case s.Arch == "":
		return errors.New("an image needs an architecture")
	}
	return nil
}

// descriptor points at a blob, in OCI's terms.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// blobPath is where the layout keeps the blob.
func (d descriptor) blobPath() string {
	return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:")
}

// describe builds a descriptor for bytes already in memory.
func describe(mediaType string, b []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(b)), Size: int64(len(b))}
}

// counter measures what passes through it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// Write packs the image and returns its digest. The layer is produced twice, once for its digest and once for the
// tar, so that images larger than memory are no problem; a source that changes between the two is an error.
func Write(w io.Writer, s Spec) (digest string, err error) {
	if err := s.validate(); err != nil {
		return "", err
	}
	var size counter
	sum := sha256.New()
	if err := writeLayer(io.MultiWriter(sum, &size), s.Files); err != nil {
		return "", err
	}
	layer := descriptor{MediaType: "application/vnd.oci.image.layer.v1.tar",
		Digest: fmt.Sprintf("sha256:%x", sum.Sum(nil)), Size: size.n}
	docs, manifest, err := documents(s, layer)
	if err != nil {
		return "", err
	}

	tw := tar.NewWriter(w)
	for _, d := range docs {
		if err := writeEntry(tw, d.name, d.body); err != nil {
			return "", err
		}
	}
	if err := writeLayerBlob(tw, layer, s.Files); err != nil {
		return "", err
	}
	if err := tw.Close(); err != nil {
		return "", fmt.Errorf("finishing the image: %w", err)
	}
	return manifest.Digest, nil
}

func writeLayerBlob(tw *tar.Writer, layer descriptor, files []File) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: layer.blobPath(), Mode: 0o644,
		Size: layer.Size}); err != nil {
		return fmt.Errorf("writing the layer: %w", err)
	}
	sum := sha256.New()
	if err := writeLayer(io.MultiWriter(tw, sum), files); err != nil {
		return err
	}
	if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); got != layer.Digest {
		return errors.New("a source file changed while the image was packed")
	}
	return nil
}

func writeEntry(tw *tar.Writer, name string, body []byte) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644,
		Size: int64(len(body))}); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if _, err := tw.Write(body); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// document is one small JSON file of the layout.
type document struct {
	name string
	body []byte
}

// documents builds every JSON file of the layout and the descriptor of the manifest.
func documents(s Spec, layer descriptor) (docs []document, manifest descriptor, err error) {
	config, err := json.Marshal(map[string]any{
		"architecture": s.Arch, "os": "linux", "config": runConfig(s),
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return nil, manifest, fmt.Errorf("encoding the image config: %w", err)
	}
	configDesc := describe("application/vnd.oci.image.config.v1+json", config)
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifestBody, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": configDesc, "layers": []descriptor{layer},
	})
	if err != nil {
		return nil, manifest, fmt.Errorf("encoding the image manifest: %w", err)
	}
	manifest = describe(manifestType, manifestBody)
	manifest.Platform = &platform{Architecture: s.Arch, OS: "linux"}
	manifest.Annotations = map[string]string{
		"io.containerd.image.name":          s.Ref,
		"org.opencontainers.image.ref.name": s.Ref[strings.LastIndex(s.Ref, ":")+1:],
	}
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{manifest},
	})
	if err != nil {
		return nil, manifest, fmt.Errorf("encoding the image index: %w", err)
	}
	docker, err := json.Marshal([]map[string]any{
		{"Config": configDesc.blobPath(), "RepoTags": []string{s.Ref}, "Layers": []string{layer.blobPath()}},
	})
	if err != nil {
		return nil, manifest, fmt.Errorf("encoding the docker manifest: %w", err)
	}
	return []document{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{"manifest.json", docker},
		{configDesc.blobPath(), config},
		{manifest.blobPath(), manifestBody},
	}, manifest, nil
}

// runConfig is the part of the image config that says how to run it.
func runConfig(s Spec) map[string]any {
	env, dir := s.Env, s.WorkingDir
	if len(env) == 0 {
		env = []string{"PATH=/"}
	}
	if dir == "" {
		dir = "/"
	}
	config := map[string]any{"Env": env, "WorkingDir": dir}
	if len(s.Entrypoint) > 0 {
		config["Entrypoint"] = s.Entrypoint
	}
	if s.User != "" {
		config["User"] = s.User
	}
	return config
}
