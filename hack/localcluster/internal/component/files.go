// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"parley.dev/parley/hack/localcluster/internal/layout"
)

//go:embed templates
var templates embed.FS

// cniConfig is where containerd looks for the pod network, on the cluster's private /etc.
const cniConfig = "/etc/cni/net.d/10-bridge.conflist"

func containerdConfig(l layout.Cluster) string { return l.Path("containerd.toml") }
func kubeletConfig(l layout.Cluster) string    { return l.Path("kubelet.yaml") }

// File is a configuration file with its place.
type File struct {
	Path string
	Body []byte
}

// Files renders the configuration files.
func Files(l layout.Cluster) ([]File, error) {
	var files []File
	for _, f := range []struct{ path, template string }{
		{containerdConfig(l), "containerd.toml"},
		{kubeletConfig(l), "kubelet.yaml"},
		{cniConfig, "bridge.conflist"},
	} {
		t, err := template.New(f.template).Option("missingkey=error").ParseFS(templates, "templates/"+f.template)
		if err != nil {
			return nil, fmt.Errorf("reading the template of %s: %w", f.path, err)
		}
		var body bytes.Buffer
		if err := t.Execute(&body, values(l)); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", f.path, err)
		}
		files = append(files, File{f.path, body.Bytes()})
	}
	return files, nil
}

func values(l layout.Cluster) map[string]string {
	return map[string]string{
		"Runc":       l.Program("runc"),
		"CNIPlugins": l.CNI(),
		"CNIConfig":  filepath.Dir(cniConfig),
		"PauseImage": layout.PauseImage,
		"Socket":     layout.ContainerdSocket,
		"Cgroup":     "/" + l.Cgroup(),
		"ClientCA":   filepath.Join(l.PKI(), "ca.crt"),
		"Bridge":     layout.PodBridge,
		"PodCIDR":    layout.PodCIDR,
	}
}

// WriteFiles renders the configuration files and puts them in place.
func WriteFiles(l layout.Cluster) error {
	files, err := Files(l)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return fmt.Errorf("making room for %s: %w", f.Path, err)
		}
		if err := os.WriteFile(f.Path, f.Body, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", f.Path, err)
		}
	}
	return nil
}
