// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"embed"
	"errors"
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

func containerdConfig(l layout.Cluster, n layout.Node) string {
	return l.Path(n.Own("containerd") + ".toml")
}

func kubeletConfig(l layout.Cluster, n layout.Node) string { return l.Path(n.Own("kubelet") + ".yaml") }

func corefile(l layout.Cluster) string { return l.Path("Corefile") }

// File is a configuration file with its place.
type File struct {
	Path string
	Body []byte
}

// Files renders the configuration files.
func Files(l layout.Cluster) ([]File, error) {
	network, err := render(l, l.Nodes[0], cniConfig, "bridge.conflist")
	files := []File{network}
	if l.Network != "" {
		dns, dnsErr := render(l, l.Nodes[0], corefile(l), "Corefile")
		files, err = append(files, dns), errors.Join(err, dnsErr)
	}
	for _, n := range l.Nodes {
		containerd, containerdErr := render(l, n, containerdConfig(l, n), "containerd.toml")
		kubelet, kubeletErr := render(l, n, kubeletConfig(l, n), "kubelet.yaml")
		files, err = append(files, containerd, kubelet), errors.Join(err, containerdErr, kubeletErr)
	}
	return files, err
}

func render(l layout.Cluster, n layout.Node, path, name string) (File, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(templates, "templates/"+name)
	if err != nil {
		return File{}, fmt.Errorf("reading the template of %s: %w", path, err)
	}
	var body bytes.Buffer
	if err := t.Execute(&body, values(l, n)); err != nil {
		return File{}, fmt.Errorf("rendering %s: %w", path, err)
	}
	return File{path, body.Bytes()}, nil
}

func values(l layout.Cluster, n layout.Node) map[string]string {
	dnsIP := ""
	if l.Network != "" {
		dnsIP = layout.DNSIP
	}
	return map[string]string{
		"Runc":           l.Program("runc"),
		"CNIPlugins":     l.CNI(),
		"CNIConfig":      filepath.Dir(cniConfig),
		"PauseImage":     layout.PauseImage,
		"Socket":         n.ContainerdSocket(),
		"ContainerdRoot": n.Own("/var/lib/containerd"),
		"State":          filepath.Dir(n.ContainerdSocket()),
		"Cgroup":         "/" + l.CgroupOf(n),
		"ClientCA":       filepath.Join(l.PKI(), "ca.crt"),
		"KubeletRoot":    n.Own("/var/lib/kubelet"),
		"PodLogs":        n.Own("/var/log/pods"),
		"KubeletPort":    n.KubeletPort,
		"HealthPort":     n.HealthPort,
		"Bridge":         layout.PodBridge,
		"PodCIDR":        layout.PodCIDR,
		"AdminConfig":    filepath.Join(l.PKI(), "admin.kubeconfig"),
		"DNSIP":          dnsIP,
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
