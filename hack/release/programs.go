// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"parley.dev/parley/hack/release/krew"
)

// architectures of the images.
var architectures = []string{"amd64", "arm64"}

// programs of the image.
var programs = []string{"manager", "generator", "relay", "gateway", "workspace-agent"}

// platforms of kubectl chat.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// built has the programs of a release: dir/OS-ARCH/PROGRAM.
type built struct{ dir string }

func (b built) path(platform, program string) string {
	if strings.HasPrefix(platform, "windows/") {
		program += ".exe"
	}
	return filepath.Join(b.dir, strings.ReplaceAll(platform, "/", "-"), program)
}

// buildPrograms builds the programs for every platform.
func (o *options) buildPrograms(ctx context.Context) (built, error) {
	dir, err := os.MkdirTemp("", "parley-release-")
	if err != nil {
		return built{}, err
	}
	b := built{dir}
	for _, arch := range architectures {
		if err := o.build(ctx, b, "linux/"+arch, programs...); err != nil {
			return b, err
		}
	}
	for _, platform := range platforms {
		if err := o.build(ctx, b, platform, "kubectl-chat"); err != nil {
			return b, err
		}
	}
	return b, nil
}

// build builds programs for a platform, with the flags of $GOFLAGS.
func (o *options) build(ctx context.Context, b built, platform string, names ...string) error {
	system, arch, _ := strings.Cut(platform, "/")
	args := []string{"build", "-ldflags=-s -w -X parley.dev/parley/internal/text/version.release=" + o.version,
		"-o", filepath.Dir(b.path(platform, "any")) + "/"}
	for _, name := range names {
		args = append(args, "./cmd/"+name)
	}
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir, build.Stderr = o.root, os.Stderr
	build.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return fmt.Errorf("building %s for %s: %w", strings.Join(names, ", "), platform, err)
	}
	fmt.Fprintf(os.Stderr, "release: %s for %s\n", strings.Join(names, ", "), platform)
	return nil
}

// packPlugin packs kubectl chat for krew.
func (o *options) packPlugin(b built) error {
	p := krew.Packing{Version: o.version, URL: o.downloads, License: filepath.Join(o.root, "LICENSE"), Out: o.out}
	given := make([]string, 0, len(platforms))
	for _, platform := range platforms {
		given = append(given, platform+"="+b.path(platform, "kubectl-chat"))
	}
	return p.Pack(given)
}
