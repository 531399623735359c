// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"parley.dev/parley/hack/localcluster/internal/layout"
)

// KubeletCommand is the subcommand that a cluster's kubelet is started with: RunKubelet.
const KubeletCommand = "kubelet"

// kernelSettings are what the kubelet wants of the whole machine whenever it starts, as of Kubernetes 1.37
// (pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables).
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

const kernelSettingsDir = "/proc/sys/"

// RunKubelet becomes the kubelet, in a mount namespace of its own where files with the values it wants cover those
// kernel settings: it finds nothing to change on the machine, however often it is started. What it mounts for
// pods still reaches the container runtime; the covers do not, because the kernel refuses a pod with a user
// namespace of its own where any part of /proc is covered.
func RunKubelet(l layout.Cluster, kubelet string, args []string) error {
	runtime.LockOSThread() // a mount namespace belongs to a thread until the program is replaced
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making the kubelet's mount namespace: %w", err)
	}
	if err := syscall.Mount("", "/proc", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping the kubelet's covers to itself: %w", err)
	}
	for name, value := range kernelSettings {
		cover := l.Path("tmp", strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(cover, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("covering kernel setting %s: %w", name, err)
		}
		if err := bind(cover, filepath.Join(kernelSettingsDir, name)); err != nil {
			return err
		}
	}
	if err := syscall.Exec(kubelet, append([]string{kubelet}, args...), os.Environ()); err != nil {
		return fmt.Errorf("starting the kubelet: %w", err)
	}
	return nil
}
