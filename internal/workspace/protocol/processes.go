// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// Binding binds a workspace to a chat.
type Binding struct {
	// Chat is the UID of the root of the chat's family.
	Chat string `json:"chat"`
}

// Info describes a workspace.
type Info struct {
	// Directory of the workspace's files, absolute.
	Directory string `json:"directory"`
	// OS and Arch as Go calls them.
	OS   string `json:"os"`
	Arch string `json:"arch"`
	// Shell that runs commands; empty: the image has none.
	Shell string `json:"shell,omitempty"`
	// Running is how many commands run, including exited ones that have descendants.
	Running int `json:"running"`
}

// StartRequest starts a command.
type StartRequest struct {
	// Command is run by the shell, Argv without one. Exactly one of the two is set.
	Command string   `json:"command,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	// Dir to run it in, relative to the workspace's directory or absolute; default: the workspace's directory.
	Dir string `json:"dir,omitempty"`
	// Env is added to the agent's own environment, NAME=VALUE.
	Env []string `json:"env,omitempty"`
}

// ProcessState is the state of a command.
type ProcessState string

// The states, and what each means.
const (
	Running ProcessState = "Running" // it has not ended
	Exited  ProcessState = "Exited"  // its own process ended, by itself or by a signal; descendants may still run
	Lost    ProcessState = "Lost"    // the workspace's container was restarted, which ended it
)

// Process is a command that was started.
type Process struct {
	// ID that people and models use, such as p3.
	ID string `json:"id"`
	// Key of its start; "main" for the command of the workspace's template.
	Key string `json:"key"`
	// Command of the request, or its Argv with each word quoted, cut at 4 KiB.
	Command string `json:"command"`
	Dir     string `json:"dir"`
	// Session reports whether it has a session; then its output is what it writes to standard error.
	Session bool `json:"session,omitempty"`

	State ProcessState `json:"state"`
	// ExitCode is set if it exited by itself.
	ExitCode *int `json:"exitCode,omitempty"`
	// Signal that ended it, such as SIGKILL.
	Signal string `json:"signal,omitempty"`
	// Note has further facts about its end.
	Note string `json:"note,omitempty"`

	StartedAt time.Time `json:"startedAt"`
	// EndedAt is zero while it runs.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// OutputBytes is how much it has written, standard output and error together, in the order of writing.
	OutputBytes int64 `json:"outputBytes"`
	// OutputDropped is how much of that is not kept: after HeadBytes, or where the storage was full, which Note reports.
	OutputDropped int64 `json:"outputDropped,omitempty"`

	// Descendants still run although it has exited; nil: there are none, or it has not exited.
	Descendants *Descendants `json:"descendants,omitempty"`
}

// Descendants are the processes that a command has started.
type Descendants struct {
	// Count is the number of all, First some of them, parents before their children.
	Count int          `json:"count"`
	First []Descendant `json:"first"`
}

// Descendant is a process that a command has started.
type Descendant struct {
	PID int `json:"pid"`
	// Command is its arguments, joined with spaces and cut if they are long.
	Command string `json:"command"`
}

// ProcessList lists the commands of the workspace.
type ProcessList struct {
	Processes []Process `json:"processes"`
}

// Signal that people and models may send.
type Signal string

// The signals: SIGINT, SIGTERM and SIGKILL.
const (
	Interrupt Signal = "interrupt"
	Terminate Signal = "terminate"
	Kill      Signal = "kill"
)

// SignalRequest sends a signal to a command and all its descendants.
type SignalRequest struct {
	Signal Signal `json:"signal"`
}
