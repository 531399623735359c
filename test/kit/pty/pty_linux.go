// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pty has terminals for tests, on Linux.
package pty

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"parley.dev/parley/test/kit/check"
)

// Open returns a terminal of 100 columns and 40 lines: what a person types and reads at, and what a program has for
// standard input and output.
func Open(t testing.TB) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check.OK(t, err)
	t.Cleanup(func() { _ = person.Close() })
	check.OK(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	check.OK(t, err)
	check.OK(t, unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	check.OK(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}
