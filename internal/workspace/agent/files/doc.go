// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads, writes, edits and searches the files of a workspace for the model of a chat.
//
// It keeps these invariants. Nothing outside of the workspace's directory is read or changed, whatever paths say and
// wherever links lead: every access goes through one os.Root. Nothing but regular files and directories is opened, so
// that no pipe or device makes a request wait. A file is replaced as a whole, by a rename; several files of one request
// are replaced all or none, also if the agent dies in between. A change with a key is made once, and answered the same
// when it is asked for again. What a file holds is never invented: line endings, a missing last newline and modes stay.
//
// Errors are *protocol.Error, but for those of a context.
package files
