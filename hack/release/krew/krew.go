// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew packs kubectl chat for krew, kubectl's manager of plug-ins: an archive for each platform, and the
// manifest that names them.
package krew

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Packing is what a release needs.
type Packing struct {
	// Version of the release, such as v0.1.0.
	Version string
	// URL below which the archives will be; empty: there is no manifest.
	URL string
	// License is the file with the licence, which goes into each archive.
	License string
	// Out is the folder for the archives and chat.yaml.
	Out string
}

// semver is a version as krew takes it: its "v" is required.
var semver = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func (p *Packing) check(programs []string) error {
	switch u, err := url.Parse(p.URL); {
	case !semver.MatchString(p.Version):
		return fmt.Errorf("the version %q is not of the form v1.2.3: set VERSION", p.Version)
	case p.URL != "" && (err != nil || u.Scheme != "https" || u.Host == ""):
		return fmt.Errorf("%q is no https:// URL below which the archives will be: set DOWNLOADS", p.URL)
	case len(programs) == 0:
		return errors.New("there is no program to pack")
	}
	return nil
}

// Pack packs programs, each given as OS/ARCH=FILE.
func (p *Packing) Pack(programs []string) error {
	if err := p.check(programs); err != nil {
		return err
	}
	m := newManifest(p.Version)
	for _, given := range programs {
		t, err := p.target(given)
		if err != nil {
			return err
		}
		m.Spec.Platforms = append(m.Spec.Platforms, t)
	}
	if p.URL == "" {
		return nil
	}
	raw, err := yaml.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return os.WriteFile(filepath.Join(p.Out, m.Metadata.Name+".yaml"), raw, 0o644)
}

// target packs a program, given as OS/ARCH=FILE.
func (p *Packing) target(given string) (target, error) {
	platform, file, ok := strings.Cut(given, "=")
	system, arch, named := strings.Cut(platform, "/")
	if !ok || !named {
		return target{}, fmt.Errorf("%q is not of the form OS/ARCH=FILE", given)
	}
	name := fmt.Sprintf("kubectl-chat-%s-%s-%s.tar.gz", p.Version, system, arch)
	sum, err := p.pack(filepath.Join(p.Out, name), file)
	if err != nil {
		return target{}, fmt.Errorf("packing %s: %w", platform, err)
	}
	return target{Bin: filepath.Base(file), SHA256: sum, URI: strings.TrimSuffix(p.URL, "/") + "/" + name,
		Selector: selector{map[string]string{"os": system, "arch": arch}}}, nil
}

// pack writes an archive of a program and the licence, and returns its SHA-256. The same files make the same archive.
func (p *Packing) pack(archive, program string) (string, error) {
	out, err := os.Create(archive)
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close() }()
	sum := sha256.New()
	zipped := gzip.NewWriter(io.MultiWriter(out, sum))
	packed := tar.NewWriter(zipped)
	if err := errors.Join(add(packed, program, 0o755), add(packed, p.License, 0o644), packed.Close(), zipped.Close(),
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
