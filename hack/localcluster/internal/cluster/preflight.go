// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNeedsRoot is returned by what makes or enters namespaces.
var ErrNeedsRoot = errors.New("needs root, for namespaces, mounts and control groups: use sudo")

// tools are the programs of the system that a cluster runs, with the Debian package that has them: ip sets up the
// network, the kubelet mounts volumes.
var tools = map[string]string{"ip": "iproute2", "mount": "mount", "umount": "mount"}

// networkTools are the programs of the system that the network's programs run.
var networkTools = map[string]string{"nft": "nftables", "iptables": "iptables", "ipset": "ipset"}

// preflight reports everything that is missing at once, before anything is touched.
func (m Manager) preflight() error {
	if err := m.Check(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return ErrNeedsRoot
	}
	var missing []string
	needed, setup := maps.Clone(tools), "hack/setup.sh"
	if m.Network != "" {
		maps.Copy(needed, networkTools)
		setup += " network"
	}
	for tool, pkg := range needed {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, fmt.Sprintf("the program %s (Debian package %s; %s installs it)", tool, pkg, setup))
		}
	}
	var unbuilt []string
	for _, p := range m.Programs() {
		if _, err := os.Stat(p); err != nil {
			unbuilt = append(unbuilt, filepath.Base(p))
		}
	}
	if len(unbuilt) > 0 {
		missing = append(missing, fmt.Sprintf("programs in %q (make cluster-binaries builds them): %s", m.Bin,
			strings.Join(unbuilt, ", ")))
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing:\n  %s", strings.Join(missing, "\n  "))
	}
	return nil
}
