// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const v1Table = `tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
`

const v2Table = `cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0
proc /proc proc rw 0 0
`

func TestPathsCoverHierarchiesOfBothCgroupVersions(t *testing.T) {
	for name, tc := range map[string]struct{ table, want string }{
		"version 1":  {v1Table, "/sys/fs/cgroup/cpu,cpuacct/g /sys/fs/cgroup/cpuset/g /sys/fs/cgroup/unified/g"},
		"version 2":  {v2Table, "/sys/fs/cgroup/g"},
		"no cgroups": {"proc /proc proc rw 0 0\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Detect(tc.table).Paths("g"), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWithoutControlGroupsTheErrorSaysSo(t *testing.T) {
	if err := (Host{}).Create("g"); err == nil || !strings.Contains(err.Error(), "/sys/fs/cgroup") {
		t.Error(err)
	}
}

func TestANewVersion1GroupGetsTheMachinesProcessors(t *testing.T) {
	root := t.TempDir()
	for file, body := range map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Detect("cgroup " + root + " cgroup rw,cpuset 0 0\n").Create("g"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "g", "cpuset.cpus")); err != nil || string(b) != "0-1\n" {
		t.Errorf("the group has %q, %v", b, err)
	}
}

func TestRemoveDeletesOnlyTheGroupsTree(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"g/kubepods/pod1", "g/kubepods/pod2", "other"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := Detect("cgroup " + root + " cgroup rw,cpuset 0 0\n")
	for range 2 { // the second time there is nothing to remove, which is no error
		if err := h.Remove(t.Context(), "g"); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*")); len(left) != 1 || filepath.Base(left[0]) != "other" {
		t.Errorf("left are %v", left)
	}
}

func TestRemoveOfBusyGroupTimesOut(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "g"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "g", "busy"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Detect("cgroup "+root+" cgroup rw,cpuset 0 0\n").Remove(ctx, "g"); err == nil {
		t.Error("it was reported as removed")
	}
}
