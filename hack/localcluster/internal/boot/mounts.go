// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"parley.dev/parley/hack/localcluster/internal/layout"
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
	for _, dir := range append(n.cluster.NodeDataDirs(), "/var/lib/cni", layout.VolumesDir) {
		if err := n.onDisk(dir); err != nil {
			return err
		}
	}
	return nil
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
