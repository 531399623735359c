// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mounts gives the cluster private layers over the directories its programs write to, so that all of them keep
// their default paths and nothing of it reaches the machine.
func (n *Node) mounts(context.Context) error {
	// Private first, so that nothing goes back to the machine; shared then, among the cluster's own containers.
	for _, flags := range []uintptr{syscall.MS_REC | syscall.MS_PRIVATE, syscall.MS_REC | syscall.MS_SHARED} {
		if err := syscall.Mount("", "/", "", flags, ""); err != nil {
			return fmt.Errorf("detaching the mounts from the machine's: %w", err)
		}
	}
	if err := mount("proc", "/proc", "proc", ""); err != nil { // shows this process namespace only
		return err
	}
	for _, dir := range []string{"/run", n.cluster.Path("tmp")} {
		if err := mount("tmpfs", dir, "tmpfs", ""); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/var/lib", "/var/log", "/etc"} {
		if err := n.overlay(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods"} {
		if err := n.onDisk(dir); err != nil {
			return err
		}
	}
	return n.coverKernelSettings()
}

func mount(source, target, fstype, options string) error {
	if err := syscall.Mount(source, target, fstype, 0, options); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", fstype, target, err)
	}
	return nil
}

func bind(source, target string) error {
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	return nil
}

// overlay lets the cluster see and change a directory while the changes stay in memory.
func (n *Node) overlay(dir string) error {
	upper, work := n.cluster.Path("tmp", dir, "upper"), n.cluster.Path("tmp", dir, "work")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making room for changes to %s: %w", dir, err)
		}
	}
	err := mount("overlay", dir, "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work))
	if errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("%w (the kernel has no overlay file system: try `modprobe overlay`)", err)
	}
	return err
}

// onDisk puts a directory on the disk, below the cluster's own: container layers need a real file system, and
// would fill the memory.
func (n *Node) onDisk(dir string) error {
	source := n.cluster.Path("fs", dir)
	for _, d := range []string{source, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making room for %s: %w", dir, err)
		}
	}
	return bind(source, dir)
}

// kernelSettings are what the kubelet wants of the whole machine when it starts, as of Kubernetes 1.37
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

// coverKernelSettings shows the kubelet the values it wants, so that it does not change the machine.
func (n *Node) coverKernelSettings() error {
	for name, value := range kernelSettings {
		cover := n.cluster.Path("tmp", strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(cover, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("covering kernel setting %s: %w", name, err)
		}
		if err := bind(cover, filepath.Join(kernelSettingsDir, name)); err != nil {
			return err
		}
	}
	return nil
}

func uncoverKernelSettings() error {
	for name := range kernelSettings {
		if err := syscall.Unmount(filepath.Join(kernelSettingsDir, name), 0); err != nil {
			return fmt.Errorf("uncovering kernel setting %s: %w", name, err)
		}
	}
	return nil
}
