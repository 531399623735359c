// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// tetheredTo is the variable of the environment that names the test binary's process to the programs that it starts.
const tetheredTo = "PARLEY_TESTCLUSTER_PROCESS"

// init makes a copy of the test binary that was started under the name of one of the programs into that program, and
// has the kernel kill it when the test binary ends, however it ends. envtest gives no way to say so where it starts
// them; without it, a test binary that is killed or panics leaves them behind.
// It runs in the thread that becomes the program.
func init() {
	name := filepath.Base(os.Args[0])
	if os.Getenv(tetheredTo) == "" || !slices.Contains(programs, name) {
		return
	}
	fmt.Fprintln(os.Stderr, become(name))
	os.Exit(1)
}

// become returns only if it fails.
func become(name string) error {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	if errno != 0 {
		return fmt.Errorf("tethering %s: %w", name, errno)
	}
	if parent := strconv.Itoa(os.Getppid()); parent != os.Getenv(tetheredTo) {
		return fmt.Errorf("tethering %s: the test binary has ended", name)
	}
	env := os.Environ()
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" { // A sixth less time, for twice the memory.
		env = append(env, "GOGC=400", "GOMEMLIMIT=2GiB")
	}
	return syscall.Exec(filepath.Join(os.Getenv(assetsVariable), name), os.Args, env)
}

// tether makes a folder that has the programs under their names, each of which ends with this process. It may be
// removed once they run.
func tether() (dir string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the test binary: %w", err)
	}
	if err := os.Setenv(tetheredTo, strconv.Itoa(os.Getpid())); err != nil {
		return "", fmt.Errorf("naming the test binary's process: %w", err)
	}
	if dir, err = os.MkdirTemp("", "parley-testcluster-"); err != nil {
		return "", fmt.Errorf("making a folder for the control plane: %w", err)
	}
	for _, name := range programs {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			return dir, fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return dir, nil
}
