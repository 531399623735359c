// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version tells the version of a program.
package version

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// release is the version of a release, such as v0.1.0. The linker sets it.
var release string

// Version is the version of the release, or of the module after "go install"; "(devel)" for other builds.
func Version() string {
	module := ""
	if build, ok := debug.ReadBuildInfo(); ok {
		module = build.Main.Version
	}
	return cmp.Or(release, module, "(devel)")
}

// Platform is the system and the architecture of the program, such as linux/amd64.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// AddFlag adds the flag --version, which prints the version of the program and exits.
func AddFlag(to *flag.FlagSet, program string) {
	to.BoolFunc("version", "print the version and exit", func(string) error {
		Print(os.Stdout, program)
		os.Exit(0)
		return nil
	})
}

// Print prints the version of the program.
func Print(to io.Writer, program string) {
	fmt.Fprintf(to, "%s %s (%s, %s)\n", program, Version(), runtime.Version(), Platform())
}
