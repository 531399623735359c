// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageName is the last part of the image's name.
const imageName = "parley"

// imageUser runs the programs. It is a number, so that kubelets see that it is not root.
const imageUser = "65532:65532"

// image is where the image of a release will be.
type image struct{ registry, tag, digest string }

func (i image) reference() string {
	return i.registry + "/" + imageName + ":" + i.tag + "@" + i.digest
}

// writeImage writes the image as an OCI layout, with one manifest for each architecture.
func (o *options) writeImage(b built) (image, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		one, err := o.imageOf(b, arch)
		if err != nil {
			return image{}, fmt.Errorf("packing the image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	digest, err := index.Digest()
	if err != nil {
		return image{}, fmt.Errorf("computing the digest of the image: %w", err)
	}
	written, err := layout.Write(filepath.Join(o.out, "images", imageName), empty.Index)
	if err == nil {
		err = written.AppendIndex(index, layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": o.version}))
	}
	if err != nil {
		return image{}, fmt.Errorf("writing the layout of the image: %w", err)
	}
	return image{o.registry, o.version, digest.String()}, nil
}

// imageOf is the image for an architecture.
func (o *options) imageOf(b built, arch string) (v1.Image, error) {
	packed, err := layerOf(b, arch)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	one, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	file, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", arch
	file.Config = v1.Config{User: imageUser, WorkingDir: "/", Env: []string{"PATH=/"}, Labels: map[string]string{
		"org.opencontainers.image.title": "Parley", "org.opencontainers.image.version": o.version,
		"org.opencontainers.image.url": "https://parley.dev", "org.opencontainers.image.licenses": "Apache-2.0",
	}}
	return mutate.ConfigFile(one, file)
}

// layerOf is a tar with the programs. It has no times and no owners, so that the same programs make the same image.
func layerOf(b built, arch string) ([]byte, error) {
	var packed bytes.Buffer
	to := tar.NewWriter(&packed)
	for _, program := range programs {
		content, err := os.ReadFile(b.path("linux/"+arch, program))
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Name: program, Mode: 0o755, Size: int64(len(content)), Format: tar.FormatUSTAR}
		if err := to.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := to.Write(content); err != nil {
			return nil, err
		}
	}
	return packed.Bytes(), to.Close()
}

// pushLayout pushes the only image of an OCI layout, with the login of the Docker client's configuration.
func pushLayout(ctx context.Context, dir, reference string, insecure bool) error {
	var parse []name.Option
	if insecure {
		parse = append(parse, name.Insecure)
	}
	to, err := name.ParseReference(reference, parse...)
	if err != nil {
		return fmt.Errorf("reading the name of the image: %w", err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	if len(manifest.Manifests) != 1 {
		return errors.New("the layout does not have exactly one image")
	}
	pushed, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	if err := remote.WriteIndex(to, pushed, remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	fmt.Println(reference + "@" + manifest.Manifests[0].Digest.String())
	return nil
}
