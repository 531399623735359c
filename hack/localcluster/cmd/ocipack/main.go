// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ocipack writes a container image tar from local files, without a container engine:
//
//	ocipack -o out.tar -ref registry/name:tag -entrypoint /manager -user 65532:65532 bin/manager=/manager
//
// The tar is reproducible byte for byte; it loads into containerd, kind, podman and docker. It prints the
// reference and the digest.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"parley.dev/parley/hack/localcluster/internal/image"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintln(os.Stderr, "ocipack:", err)
		os.Exit(1)
	}
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func run(args []string) error {
	var spec image.Spec
	flags := flag.NewFlagSet("ocipack", flag.ContinueOnError)
	out := flags.String("o", "", "tar file to write")
	flags.StringVar(&spec.Ref, "ref", "", "full image reference with a tag, e.g. localhost/parley:dev")
	flags.Var((*list)(&spec.Entrypoint), "entrypoint", "word of the entrypoint; repeat it for more words")
	flags.Var((*list)(&spec.Env), "env", "NAME=value; repeat it for more (default PATH=/)")
	flags.StringVar(&spec.User, "user", "", "numeric uid or uid:gid (default root)")
	flags.StringVar(&spec.WorkingDir, "workdir", "/", "working directory")
	flags.StringVar(&spec.Arch, "arch", runtime.GOARCH, "architecture of the programs")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: ocipack -o OUT.tar -ref REF [flags] SRC=/DST...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, arg := range flags.Args() {
		f, err := image.ParseFile(arg)
		if err != nil {
			return err
		}
		spec.Files = append(spec.Files, f)
	}
	if *out == "" {
		return errors.New("-o OUT.tar is required")
	}
	digest, err := writeFile(*out, spec)
	if err != nil {
		return err
	}
	fmt.Println(spec.Ref, digest)
	return nil
}

// writeFile writes the tar beside its place and renames it in, so that a reader never sees half of it.
func writeFile(out string, spec image.Spec) (digest string, err error) {
	f, err := os.CreateTemp(filepath.Dir(out), ".ocipack-*")
	if err != nil {
		return "", fmt.Errorf("creating %s: %w", out, err)
	}
	digest, err = image.Write(f, spec)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("packing %s: %w", spec.Ref, err), os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), out); err != nil {
		return "", errors.Join(fmt.Errorf("moving the image into place: %w", err), os.Remove(f.Name()))
	}
	return digest, nil
}
