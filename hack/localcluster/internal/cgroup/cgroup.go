// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package cgroup makes and removes the control group that holds all of a cluster's pods.
//
// It works with both layouts of Linux: version 1, where each controller has its own hierarchy, and version 2 with
// one hierarchy for all. The group has the same name everywhere and belongs to one cluster only.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Host is where control groups are mounted. The zero Host has none.
type Host struct {
	// unified is the version 2 hierarchy with controllers; empty on a version 1 machine.
	unified string
	// hierarchies are those of version 1.
	hierarchies []hierarchy
	// bare is a version 2 hierarchy without controllers beside version 1. Container runtimes make groups there
	// too, although nobody asks them to.
	bare string
}

type hierarchy struct {
	path   string
	cpuset bool
}

// Detect reads a mount table as in /proc/mounts.
func Detect(mounts string) Host {
	var h Host
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		switch path, kind, options := f[1], f[2], strings.Split(f[3], ","); {
		case kind == "cgroup":
			h.hierarchies = append(h.hierarchies, hierarchy{path, slices.Contains(options, "cpuset")})
		case kind == "cgroup2" && path == "/sys/fs/cgroup":
			h.unified = path
		case kind == "cgroup2":
			h.bare = path
		}
	}
	return h
}

// Paths are the directories that a group of this name may have.
func (h Host) Paths(name string) []string {
	if h.unified != "" {
		return []string{filepath.Join(h.unified, name)}
	}
	var paths []string
	for _, v1 := range h.hierarchies {
		paths = append(paths, filepath.Join(v1.path, name))
	}
	if h.bare != "" {
		paths = append(paths, filepath.Join(h.bare, name))
	}
	return paths
}

// Create makes the group. It may exist already.
func (h Host) Create(name string) error {
	if len(h.Paths(name)) == 0 {
		return errors.New("no control groups are mounted (expected below /sys/fs/cgroup)")
	}
	for _, p := range h.Paths(name) {
		if err := os.MkdirAll(p, 0o755); err != nil {
			return fmt.Errorf("creating a control group: %w", err)
		}
	}
	if h.unified != "" {
		return h.enable(name)
	}
	for _, v1 := range h.hierarchies {
		if v1.cpuset {
			return copyCPUSet(v1.path, filepath.Join(v1.path, name))
		}
	}
	return errors.New("no control group hierarchy has the cpuset controller, which the kubelet needs")
}

// needed are the version 2 controllers that the kubelet insists on; the others are enabled if the kernel has them.
var needed = []string{"cpuset", "cpu", "memory", "pids"}

// enable hands the controllers down to the group and from it to the pods.
func (h Host) enable(name string) error {
	for _, c := range append(slices.Clone(needed), "hugetlb", "io") {
		for _, dir := range []string{h.unified, filepath.Join(h.unified, name)} {
			err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
			if err != nil && slices.Contains(needed, c) {
				return fmt.Errorf("enabling the control group controller %s: %w", c, err)
			}
		}
	}
	return nil
}

// copyCPUSet fills a new version 1 cpuset group, which is empty and so can hold no process.
func copyCPUSet(parent, group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return fmt.Errorf("reading the machine's cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(group, file), b, 0o644); err != nil {
			return fmt.Errorf("filling the cpuset: %w", err)
		}
	}
	return nil
}

// Remove removes the group and all below it. The kernel lets go of ended processes a moment late, so it tries
// until ctx ends.
func (h Host) Remove(ctx context.Context, name string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := h.removeOnce(name)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("removing a control group: %w", err)
		case <-tick.C:
		}
	}
}

func (h Host) removeOnce(name string) error {
	var errs []error
	for _, root := range h.Paths(name) {
		var dirs []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		errs = append(errs, err)
		for _, dir := range slices.Backward(dirs) { // children first
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
