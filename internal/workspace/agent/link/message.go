// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package link is what process 1 of a workspace and its serving process say to each other: JSON in frames over a stream
// socket that the serving process inherits, some of them with a file descriptor: the read end of the pipe that a
// command writes to, or the socket that is the standard input and output of one that is spoken to.
//
// Process 1 begins with a Hello and with every command that it still keeps. From then on it answers each request when
// the outcome is known, and tells of each exit after the answer that told of the start, and then that nothing is left.
// When it closes its side, the workspace stops.
package link

import (
	"syscall"
	"time"
)

// Message is one of its parts that are not zero; Seq goes with Start and Reply.
type Message struct {
	// Seq pairs a request with its Reply.
	Seq int64 `json:"seq,omitempty"`

	// From process 1.
	Hello    *Hello   `json:"hello,omitempty"`
	Command  *Command `json:"command,omitempty"` // with its pipe
	Reply    *Reply   `json:"reply,omitempty"`   // to a Start that went well: with the pipe
	Exit     *Exit    `json:"exit,omitempty"`    // of a command that has left processes behind
	Done     *Done    `json:"done,omitempty"`
	Stopping bool     `json:"stopping,omitempty"` // the workspace is being stopped, and nothing is started any more

	// From the serving process.
	Start *Start `json:"start,omitempty"` // of a command that is spoken to: with its end of the socket
	// Forget is the id of a command that is done, and whose exit and output are on disk.
	Forget string `json:"forget,omitempty"`
}

// Hello is how process 1 begins.
type Hello struct {
	// Boot differs between any two lives of the container.
	Boot string `json:"boot"`
	// Since is when this life began.
	Since time.Time `json:"since"`
	// Commands is how many of them follow.
	Commands int `json:"commands"`
}

// Command is one that process 1 has had started and must not forget yet.
type Command struct {
	ID string `json:"id"`
	// Supervisor is the process id of its supervisor, whose descendants are the command and all that it has started.
	Supervisor int       `json:"supervisor"`
	StartedAt  time.Time `json:"startedAt"`
	// Spoken is whether the serving process speaks to it, or one before it did.
	Spoken bool `json:"spoken,omitempty"`
	// Exit is nil while its own process runs, and Done while any does.
	Exit *Exit `json:"exit,omitempty"`
	Done *Done `json:"done,omitempty"`
}

// Exit is the end of a command's own process.
type Exit struct {
	ID string `json:"id"`
	// Status is what wait4 told.
	Status syscall.WaitStatus `json:"status"`
	At     time.Time          `json:"at"`
}

// Done is the end of a command and of all that it has started.
type Done struct {
	Exit
	// Orphaned is whether the supervisor was killed: then process 1 has ended the rest.
	Orphaned bool `json:"orphaned,omitempty"`
}

// Start has a command started, unless process 1 knows its ID. Its words are bytes: what the operating system takes is
// not always UTF-8.
type Start struct {
	ID   string   `json:"id"`
	Path []byte   `json:"path"`
	Argv [][]byte `json:"argv"`
	Env  [][]byte `json:"env"`
	// Dir is absolute. A relative Path is one within it.
	Dir []byte `json:"dir"`
}

// Reply answers a Start.
type Reply struct {
	// Errno is what the operating system said against it; 0: nothing.
	Errno syscall.Errno `json:"errno,omitempty"`
	// Command that was started, or had been.
	Command *Command `json:"command,omitempty"`
}
