// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func itoa(n int) string { return strconv.Itoa(n) }

func newKey() string { return rand.Text() }

// refusal checks with which code something is refused.
func refusal(t testing.TB, reply Reply, code protocol.ErrorCode) string {
	t.Helper()
	if reply.Refusal == nil {
		t.Fatalf("it was not refused: %+v", reply)
	}
	if reply.Refusal.Code != code {
		t.Fatalf("it was refused by %s: %s", reply.Refusal.Code, reply.Refusal.Message)
	}
	return reply.Refusal.Message
}

// exits checks by which code a command has exited.
func exits(t testing.TB, p protocol.Process, code int) {
	t.Helper()
	if p.State != protocol.Exited || p.ExitCode == nil || *p.ExitCode != code || p.Signal != "" || p.EndedAt.IsZero() {
		t.Fatalf("it does not have exit code %d: %+v", code, p)
	}
}

// killed checks by which signal a command has ended.
func killed(t testing.TB, p protocol.Process, signal string) {
	t.Helper()
	if p.State != protocol.Exited || p.ExitCode != nil || p.Signal != signal || p.EndedAt.IsZero() {
		t.Fatalf("it was not ended by %s: %+v", signal, p)
	}
}

// raceEnabled reports whether the race detector takes memory of its own.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// memory is how much physical memory a process has, in KiB.
func memory(t testing.TB, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "status"))
	check.OK(t, err)
	_, after, _ := bytes.Cut(raw, []byte("VmRSS:"))
	kib, err := strconv.Atoi(string(bytes.Fields(after)[0]))
	check.OK(t, err)
	return kib
}

// descriptors are the open files of a process. Only root may look into one that conceals itself.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	names, err := os.ReadDir(filepath.Join("/proc", itoa(pid), "fd"))
	if err != nil {
		t.Skip("looking into a process that conceals itself:", err)
	}
	return len(names)
}

// diskUse is how many bytes the files below a directory take.
func diskUse(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // It has gone meanwhile.
			return fs.SkipDir
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return err
	})
	check.OK(t, err)
	return bytes
}
