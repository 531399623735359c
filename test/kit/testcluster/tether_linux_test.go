// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// starter makes a copy of the test binary one that starts an etcd, says its process, and waits to be killed.
const starter = "PARLEY_TEST_STARTER"

func TestMain(m *testing.M) {
	if os.Getenv(starter) == "" {
		os.Exit(m.Run())
	}
	dir, err := tether()
	if err != nil {
		panic(err)
	}
	program := exec.Command(filepath.Join(dir, "etcd"), "3600")
	if err := program.Start(); err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, dir, program.Process.Pid)
	_ = program.Wait() // It ends with this process, or after an hour.
}

func TestTetheredProgramEndsWithTheTestBinary(t *testing.T) {
	t.Setenv(assetsVariable, t.TempDir())
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		sleep, err = filepath.EvalSymlinks(sleep)
	}
	check.OK(t, err)
	check.OK(t, os.Symlink(sleep, filepath.Join(os.Getenv(assetsVariable), "etcd")))
	binary := exec.CommandContext(t.Context(), os.Args[0])
	binary.Env = append(os.Environ(), starter+"=1")
	stdout, err := binary.StdoutPipe()
	check.OK(t, err)
	check.OK(t, binary.Start())
	var dir, pid string
	line, err := bufio.NewReader(stdout).ReadString('\n')
	check.OK(t, err)
	if _, err := fmt.Sscan(line, &dir, &pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	waiting.Until(t, 30*time.Second, "the program runs", func() bool { return running(pid, sleep) })
	check.OK(t, binary.Process.Kill())
	waiting.Until(t, 30*time.Second, "the program has ended", func() bool { return !running(pid, sleep) })
	_ = binary.Wait() // It was killed.
}

// running reports whether the process runs the program. One that is dead runs none.
func running(pid, program string) bool {
	file, err := os.Readlink(filepath.Join("/proc", pid, "exe"))
	return err == nil && file == program
}
