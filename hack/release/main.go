// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release of Parley in one folder, without a container engine: images, manifests, chart,
// archives of kubectl chat, bill of materials, licences, checksums, signatures and notes. "make release" calls it.
//
// The same sources make the same files, but for the signatures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// options of a release.
type options struct {
	// root is the folder of the sources, and out that of the release.
	root, out string
	// version such as v0.1.0.
	version string
	// registry is where the images will be, such as ghcr.io/example.
	registry string
	// downloads is the URL below which the archives of kubectl chat will be; empty: krew gets no manifest.
	downloads string
	// key is a file with a private key in PEM; empty: nothing is signed.
	key string
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "folder of the sources")
	flag.StringVar(&o.out, "out", "", "folder of the release, which is emptied first")
	flag.StringVar(&o.version, "version", "", "version of the release, such as v0.1.0")
	flag.StringVar(&o.registry, "registry", "", "registry, with a path if it has one, where the images will be")
	flag.StringVar(&o.downloads, "downloads", "", "https:// URL below which the files of the release will be")
	flag.StringVar(&o.key, "key", "", "PEM file with the private ECDSA key (P-256) that signs the checksums")
	push := flag.String("push", "", "OCI layout to push to the registry as NAME:VERSION, in place of making a release")
	insecure := flag.Bool("insecure", false, "push to a registry over plain HTTP")
	only := flag.String("only", "", "platform, such as linux/amd64, for which the release is made in place of all")
	flag.Parse()
	if *only != "" {
		architectures, platforms = []string{filepath.Base(*only)}, []string{*only}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.check()
	switch {
	case err != nil:
	case *push != "":
		err = pushLayout(ctx, *push, o.registry+"/"+filepath.Base(*push)+":"+o.version, *insecure)
	default:
		err = o.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// semver is a version as Helm and krew take it; its "v" is required.
var semver = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func (o *options) check() error {
	switch {
	case !semver.MatchString(o.version):
		return fmt.Errorf("VERSION is %q: set it to the version of the release, such as VERSION=v0.1.0", o.version)
	case o.registry == "" || strings.Contains(o.registry, "://") || strings.HasSuffix(o.registry, "/"):
		return fmt.Errorf("REGISTRY is %q: set it to where the images will be, such as REGISTRY=ghcr.io/example",
			o.registry)
	case o.downloads != "" && !strings.HasPrefix(o.downloads, "https://"):
		return fmt.Errorf("DOWNLOADS is %q: set it to the https:// URL below which the files will be", o.downloads)
	}
	return nil
}

// run makes the release.
func (o *options) run(ctx context.Context) error {
	if o.out == "" {
		return errors.New("-out is missing: name the folder of the release")
	}
	if err := errors.Join(os.RemoveAll(o.out), os.MkdirAll(o.out, 0o755)); err != nil {
		return fmt.Errorf("emptying the folder of the release: %w", err)
	}
	built, err := o.buildPrograms(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(built.dir) }()
	image, err := o.writeImage(built)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"install.yaml", func() error { return o.writeManifests(image) }},
		{"the chart", func() error { return o.writeChart(image) }},
		{"kubectl chat", func() error { return o.packPlugin(built) }},
		{"the bill of materials", func() error { return o.writeMaterials(ctx, built) }},
		{"the list of images", func() error { return o.write("images.txt", []byte(image.reference()+"\n")) }},
		{"the notes", o.writeNotes},
		{"the checksums", o.writeChecksums},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("making %s: %w", step.what, err)
		}
		fmt.Fprintf(os.Stderr, "release: %s\n", step.what)
	}
	return nil
}

func (o *options) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(o.out, name), content, 0o644)
}
