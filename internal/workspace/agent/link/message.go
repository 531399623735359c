// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package link is what process 1 of a workspace and its serving process say to each other: JSON in frames over a stream
// socket that the serving process inherits, some of them with a file descriptor: the read end of the pipe that a
// command writes to, or the socket that is the standard input and output of one that is spoken to.
//
// Process 1 begins with a Hello and with every command that it still keeps. From then on it answers requests in their
// order, and tells of each exit after the answer that told of the start. When it closes its side, the workspace stops.
package link

import (
	"syscall"
	"time"
)

// Message is one of its parts that are not zero; Seq goes with Start, Signal and Reply.
type Message struct {
	// Seq pairs a request with its Reply.
	Seq int64 `json:"seq,omitempty"`

	// From process 1.
	Hello    *Hello   `json:"hello,omitempty"`
	Command  *Command `json:"command,omitempty"` // with its pipe
	Reply    *Reply   `json:"reply,omitempty"`   // to a Start that went well: with the pipe
	Exit     *Exit    `json:"exit,omitempty"`
	Stopping bool     `json:"stopping,omitempty"` // the workspace is being stopped, and nothing is started any more

	// From the serving process.
	Start  *Start  `json:"start,omitempty"` // of a command that is spoken to: with its end of the socket
	Signal *Signal `json:"signal,omitempty"`
	// Forget is the id of a command whose exit is on disk, and whose output has ended.
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

// Command is one that process 1 has forked and must not forget yet.
type Command struct {
	ID string `json:"id"`
	// PID is also the id of its session.
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"startedAt"`
	// Spoken is whether the serving process speaks to it, or one before it did.
	Spoken bool `json:"spoken,omitempty"`
	// Exit is nil while it runs.
	Exit *Exit `json:"exit,omitempty"`
}

// Exit is the end of a command.
type Exit struct {
	ID string `json:"id"`
	// Status is what wait4 told.
	Status syscall.WaitStatus `json:"status"`
	At     time.Time          `json:"at"`
}

// Start forks a command, unless process 1 knows its ID. Its words are bytes: what the operating system takes is not
// always UTF-8.
type Start struct {
	ID   string   `json:"id"`
	Path []byte   `json:"path"`
	Argv [][]byte `json:"argv"`
	Env  [][]byte `json:"env"`
	// Dir is absolute. A relative Path is one within it.
	Dir []byte `json:"dir"`
}

// Signal is sent to the process group of a command that runs.
type Signal struct {
	ID     string         `json:"id"`
	Signal syscall.Signal `json:"signal"`
}

// Reply answers a Start or a Signal.
type Reply struct {
	// Errno is what the operating system said against it; 0: nothing.
	Errno syscall.Errno `json:"errno,omitempty"`
	// Command that was started, or had been.
	Command *Command `json:"command,omitempty"`
}
