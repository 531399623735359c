// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs the commands of a workspace: it starts them through process 1, keeps what they write, and
// remembers what has become of them.
//
// Each command has a directory below the state directory, with its record and its output. The record is on disk before
// the command is forked, so that a key never runs twice: neither after a restart of this process, which process 1 tells
// what runs, nor after one of the container, after which the record says that the command was lost.
//
// Output goes from the command's pipe to disk within the kernel, in segments of a MiB. Its beginning and its end are
// kept; segments between them are removed as they age. Offsets count all that was written. A command whose output
// cannot be stored continues; what was dropped is told.
//
// A command has exited when its own process has. What it has started can run on, and then the command counts as one
// that runs: it is all that is below its supervisor. Until that is gone, output is still collected.
package process
