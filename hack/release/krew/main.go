// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command krew packs kubectl chat for krew, kubectl's manager of plug-ins: an archive for each platform, and the
// manifest that names them. "make krew" builds the programs and calls it.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	var p packing
	flag.StringVar(&p.version, "version", "", "version of the release, such as v0.1.0")
	flag.StringVar(&p.url, "url", "", "https:// URL below which the archives will be")
	flag.StringVar(&p.license, "license", "LICENSE", "the licence, which goes into each archive")
	flag.StringVar(&p.out, "out", "", "folder for the archives and chat.yaml")
	flag.Parse()
	if err := p.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

// packing is what a release needs.
type packing struct{ version, url, license, out string }

// semver is a version as krew takes it: its "v" is required.
var semver = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// run packs programs, each given as OS/ARCH=FILE.
func (p *packing) run(programs []string) error {
	switch u, err := url.Parse(p.url); {
	case !semver.MatchString(p.version):
		return fmt.Errorf("the version %q is not of the form v1.2.3: set VERSION", p.version)
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q is no https:// URL below which the archives will be: set KREW_URL", p.url)
	case len(programs) == 0:
		return errors.New("there is no program to pack")
	}
	m := newManifest(p.version)
	for _, given := range programs {
		t, err := p.target(given)
		if err != nil {
			return err
		}
		m.Spec.Platforms = append(m.Spec.Platforms, t)
	}
	raw, err := yaml.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return os.WriteFile(filepath.Join(p.out, m.Metadata.Name+".yaml"), raw, 0o644)
}

// target packs a program, given as OS/ARCH=FILE.
func (p *packing) target(given string) (target, error) {
	platform, file, ok := strings.Cut(given, "=")
	system, arch, named := strings.Cut(platform, "/")
	if !ok || !named {
		return target{}, fmt.Errorf("%q is not of the form OS/ARCH=FILE", given)
	}
	name := fmt.Sprintf("kubectl-chat-%s-%s-%s.tar.gz", p.version, system, arch)
	sum, err := p.pack(filepath.Join(p.out, name), file)
	if err != nil {
		return target{}, fmt.Errorf("packing %s: %w", platform, err)
	}
	return target{Bin: filepath.Base(file), SHA256: sum, URI: strings.TrimSuffix(p.url, "/") + "/" + name,
		Selector: selector{map[string]string{"os": system, "arch": arch}}}, nil
}

// pack writes an archive of a program and the licence, and returns its SHA-256. The same files make the same archive.
func (p *packing) pack(archive, program string) (string, error) {
	out, err := os.Create(archive)
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close() }()
	sum := sha256.New()
	zipped := gzip.NewWriter(io.MultiWriter(out, sum))
	packed := tar.NewWriter(zipped)
	if err := errors.Join(add(packed, program, 0o755), add(packed, p.license, 0o644), packed.Close(), zipped.Close(),
		out.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// add adds a file to the top of an archive.
func add(to *tar.Writer, file string, mode int64) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := to.WriteHeader(&tar.Header{Name: filepath.Base(file), Mode: mode, Size: int64(len(raw)),
		Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err = to.Write(raw)
	return err
}
