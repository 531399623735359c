// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import "golang.org/x/sys/unix"

// InForeground reports whether the program may read from its terminal. A shell stops one in the background that does.
func InForeground(stream any) bool {
	file, ok := FileOf(stream)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // Only the terminal of the session stops a program.
}
