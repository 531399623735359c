// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// Binding says which chat a workspace belongs to.
type Binding struct {
	// Chat is the UID of the root of the chat's family.
	Chat string `json:"chat"`
}

// Info is what a workspace is.
type Info struct {
	// OS and Arch are the names that Go has for them.
	OS   string `json:"os"`
	Arch string `json:"arch"`
	// Directory of the workspace's files, absolute.
	Directory string `json:"directory"`
	// Shell that runs commands; empty: the image has none.
	Shell string `json:"shell,omitempty"`
	// Running is how many commands run, those included that have exited and have descendants.
	Running int `json:"running"`
}

// StartRequest starts a command.
type StartRequest struct {
	// Command is run by the shell. Argv is run without one. Exactly one of the two is set.
	Command string   `json:"command,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	// Dir to run it in, relative to the workspace's directory or absolute; default: the workspace's directory.
	Dir string `json:"dir,omitempty"`
	// Env is added to the agent's own environment, NAME=VALUE.
	Env []string `json:"env,omitempty"`
}

// ProcessState is what has become of a command.
type ProcessState string

const (
	// Running means that it has not ended.
	Running ProcessState = "Running"
	// Exited means that its own process ended, by itself or by a signal. What that has started may run on.
	Exited ProcessState = "Exited"
	// Lost means that the workspace's container was restarted while it ran, which ended it.
	Lost ProcessState = "Lost"
)

// Process is a command that was started.
type Process struct {
	// ID that people and models use, such as p3.
	ID string `json:"id"`
	// Key that it was started by; "main" for what the workspace's template runs.
	Key string `json:"key"`
	// Command as it was given; of Argv, its words quoted. What is longer than 4 KiB is cut.
	Command string `json:"command"`
	Dir     string `json:"dir"`
	// Session is whether it is spoken to; then its output is what it writes to standard error.
	Session bool `json:"session,omitempty"`

	State ProcessState `json:"state"`
	// ExitCode is set once it has exited by itself.
	ExitCode *int `json:"exitCode,omitempty"`
	// Signal that ended it, such as SIGKILL.
	Signal string `json:"signal,omitempty"`
	// Note says what else there is to know of its end.
	Note string `json:"note,omitempty"`

	StartedAt time.Time `json:"startedAt"`
	// EndedAt is zero while it runs.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// OutputBytes is how much it has written, standard output and error together, in the order of writing.
	OutputBytes int64 `json:"outputBytes"`
	// OutputDropped is how much of that is not kept: from HeadBytes on, or wherever the storage was full, as Note tells.
	OutputDropped int64 `json:"outputDropped,omitempty"`

	// Descendants are the processes that it has started and that still run, once it has exited; nil: there are none, or
	// it has not exited.
	Descendants *Descendants `json:"descendants,omitempty"`
}

// Descendants are processes that a command has started.
type Descendants struct {
	// Count is how many there are, First some of them, parents before their children.
	Count int          `json:"count"`
	First []Descendant `json:"first"`
}

// Descendant is a process that a command has started.
type Descendant struct {
	PID int `json:"pid"`
	// Command is what it was started with, its words with spaces between them; cut if it is long.
	Command string `json:"command"`
}

// ProcessList are the commands that the workspace remembers.
type ProcessList struct {
	Processes []Process `json:"processes"`
}

// Signal that people and models may send.
type Signal string

const (
	// Interrupt is SIGINT.
	Interrupt Signal = "interrupt"
	// Terminate is SIGTERM.
	Terminate Signal = "terminate"
	// Kill is SIGKILL.
	Kill Signal = "kill"
)

// SignalRequest sends a signal to a command and to all that it has started.
type SignalRequest struct {
	Signal Signal `json:"signal"`
}
