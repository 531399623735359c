// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs the commands of a workspace, keeps their output, and remembers how they ended.
//
// Each command has a directory below the state directory, with its record and its output. The record is on disk before
// the command is forked, so that a key never runs twice. After a restart of the container the record reports the
// command as lost.
//
// Output goes to segments of a MiB. Its beginning and its end are kept; segments between them are removed as they age.
// Offsets count all that was written. A command whose output cannot be stored continues, and what was dropped is
// reported.
//
// A command has exited when its own process has. What it has started can continue, and then the command counts as
// running: it is all that is below its supervisor. Until that has ended, output is collected.
package process
